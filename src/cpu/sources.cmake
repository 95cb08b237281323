set(Chunkwise_CPU_SRCS)
