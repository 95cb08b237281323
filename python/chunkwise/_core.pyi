# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
from typing import Any

class Error(RuntimeError): ...
class ParameterError(Error, ValueError):
    parameter: str | None
    value: str | None
    allowed: str | None

class BudgetError(Error, MemoryError):
    needed: int
    budget: int

class DeviceError(Error): ...
class Aborted(Error): ...

def __getattr__(name: str) -> Any: ...
