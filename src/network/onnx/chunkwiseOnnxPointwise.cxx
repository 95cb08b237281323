/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Operators on values, one by one or two by two.
#include "chunkwiseOnnxImporter.h"

#include <cmath>
#include <limits>

namespace chunkwise
{
namespace onnx
{

namespace
{

/** Copies of a one-channel image that are joined to fit one of many channels. */
constexpr int MostCopies = 4096;

void
GivePointwise(Importer & importer, Activation activation)
{
  const Value & image = importer.GetLayer(0);
  NetworkLayer  layer;
  layer.kind = LayerKind::Pointwise;
  layer.inputs = { image.layer };
  layer.activation = std::move(activation);
  importer.Give(std::move(layer), image);
}

template <ActivationKind VKind>
void
Pointwise(Importer & importer)
{
  // Sizes are rounded in the same way.
  if (importer.IsConstant(0))
  {
    throw Problem("of a constant it is not supported; simplify the model before");
  }
  Activation activation;
  activation.kind = VKind;
  GivePointwise(importer, activation);
}

/** With attributes alpha and beta. */
template <ActivationKind VKind>
void
WithParameters(Importer & importer, float alpha, const char * betaName, float beta)
{
  Activation activation;
  activation.kind = VKind;
  activation.alpha = importer.GetFloat("alpha", alpha);
  activation.beta = betaName ? importer.GetFloat(betaName, beta) : 0.0f;
  if (!std::isfinite(activation.alpha) || !std::isfinite(activation.beta))
  {
    throw Problem("a parameter is not finite");
  }
  GivePointwise(importer, activation);
}

void
LeakyRelu(Importer & importer)
{
  WithParameters<ActivationKind::LeakyRelu>(importer, 0.01f, nullptr, 0);
}

void
Elu(Importer & importer)
{
  WithParameters<ActivationKind::Elu>(importer, 1.0f, nullptr, 0);
}

void
Selu(Importer & importer)
{
  WithParameters<ActivationKind::Selu>(importer, 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f);
}

void
HardSigmoid(Importer & importer)
{
  WithParameters<ActivationKind::HardSigmoid>(importer, 0.2f, "beta", 0.5f);
}

void
PRelu(Importer & importer)
{
  Activation activation;
  activation.kind = ActivationKind::PRelu;
  activation.slopes = importer.GetPerChannel(1, importer.GetLayer(0));
  GivePointwise(importer, activation);
}

void
Clip(Importer & importer)
{
  Activation activation;
  activation.kind = ActivationKind::Clip;
  activation.alpha = std::numeric_limits<float>::lowest();
  activation.beta = std::numeric_limits<float>::max();
  const auto limit = [&](int input, float & value) {
    if (importer.HasInput(input))
    {
      const std::vector<double> numbers = importer.GetFixedNumbers(input);
      if (numbers.size() != 1 || std::isnan(numbers[0]))
      {
        throw Problem("its limits must be numbers");
      }
      value = std::abs(numbers[0]) <= std::numeric_limits<float>::max()
                ? static_cast<float>(numbers[0])
                : static_cast<float>(std::copysign(std::numeric_limits<float>::infinity(), numbers[0]));
    }
  };
  if (importer.GetVersion() < 11)
  {
    activation.alpha = importer.GetFloat("min", activation.alpha);
    activation.beta = importer.GetFloat("max", activation.beta);
  }
  else
  {
    limit(1, activation.alpha);
    limit(2, activation.beta);
  }
  GivePointwise(importer, activation);
}

/** Pad waits for its user, and so may sizes: such values go on as they are. */
void
Identity(Importer & importer)
{
  importer.GiveValue(importer.GetInput(0));
}

void
Dropout(Importer & importer)
{
  if (importer.HasInput(2) && importer.GetFixedNumbers(2) != std::vector<double>{ 0 })
  {
    throw Problem("it drops values, as in training; export the network for inference");
  }
  Identity(importer);
}

void
Cast(Importer & importer)
{
  const std::int64_t to = importer.GetInt("to", 0);
  const bool         toFloat = to >= 0 && to <= BFloat16 && IsFloatingPoint(static_cast<int>(to));
  const Value &      input = importer.GetInput(0);
  if (input.kind == Value::Kind::Layer)
  {
    if (!toFloat)
    {
      throw Problem("it makes " + ElementTypeName(static_cast<int>(to <= BFloat16 && to >= 0 ? to : 0)) +
                    " of an image; all layers are float32");
    }
    importer.GiveValue(input);
    return;
  }
  if (input.kind == Value::Kind::Tensor && toFloat && IsFloatingPoint(input.tensor->dataType))
  {
    importer.GiveValue(input);
    return;
  }
  Value value = importer.GetNumbers(0);
  value.isInteger = !toFloat;
  for (std::vector<double> & numbers : value.numbers)
  {
    for (double & number : numbers)
    {
      number = toFloat ? number : std::trunc(number);
    }
  }
  importer.GiveValue(std::move(value));
}

/** Arithmetic of sizes, for each probe. */
void
ComputeNumbers(Importer & importer, LayerKind kind)
{
  const Value a = importer.GetNumbers(0);
  const Value b = importer.GetNumbers(1);
  if (a.numbers[0].size() != b.numbers[0].size() && a.numbers[0].size() != 1 && b.numbers[0].size() != 1)
  {
    throw Problem("its operands have " + std::to_string(a.numbers[0].size()) + " and " +
                  std::to_string(b.numbers[0].size()) + " numbers");
  }
  const bool isFirst = a.dimensions.size() > b.dimensions.size() ||
                       (a.dimensions.size() == b.dimensions.size() && a.numbers[0].size() >= b.numbers[0].size());
  Value result = isFirst ? a : b;
  result.isInteger = a.isInteger && b.isInteger;
  const std::size_t count = a.numbers[0].size() == 1 ? b.numbers[0].size() : a.numbers[0].size();
  if (count != (isFirst ? a : b).numbers[0].size())
  {
    throw Problem("the dimensions of its operands do not fit");
  }
  for (std::size_t p = 0; p < importer.GetNumberOfProbes(); ++p)
  {
    for (std::size_t i = 0; i < count; ++i)
    {
      const double x = a.numbers[p][a.numbers[p].size() == 1 ? 0 : i];
      const double y = b.numbers[p][b.numbers[p].size() == 1 ? 0 : i];
      double       z = 0;
      switch (kind)
      {
        case LayerKind::Sum:
          z = x + y;
          break;
        case LayerKind::Difference:
          z = x - y;
          break;
        case LayerKind::Product:
          z = x * y;
          break;
        default:
          if (y == 0)
          {
            throw Problem("it divides by 0");
          }
          z = result.isInteger ? std::trunc(x / y) : x / y;
          break;
      }
      result.numbers[p][i] = z;
    }
  }
  importer.GiveValue(std::move(result));
}

/** With a constant: a scaling. */
void
ScaleByConstant(Importer & importer, LayerKind kind, int imageIndex)
{
  const Value & image = importer.GetLayer(imageIndex);
  if (kind == LayerKind::Quotient && imageIndex == 1)
  {
    throw Problem("a constant over an image is not supported; replace it by other operators");
  }
  const auto constant = importer.GetPerChannel(1 - imageIndex, image);
  const auto count = constant->size();
  importer.Charge(2 * count);
  auto weights = std::make_shared<std::vector<float>>(count, 1.0f);
  auto bias = std::make_shared<std::vector<float>>(count, 0.0f);
  for (std::size_t c = 0; c < count; ++c)
  {
    const float value = (*constant)[c];
    switch (kind)
    {
      case LayerKind::Sum:
        (*bias)[c] = value;
        break;
      case LayerKind::Difference:
        (*weights)[c] = imageIndex == 0 ? 1.0f : -1.0f;
        (*bias)[c] = imageIndex == 0 ? -value : value;
        break;
      case LayerKind::Product:
        (*weights)[c] = value;
        break;
      default:
        if (std::abs(value) < std::numeric_limits<float>::min())
        {
          throw Problem("it divides by 0, or nearly so");
        }
        (*weights)[c] = static_cast<float>(1.0 / static_cast<double>(value));
        break;
    }
  }
  NetworkLayer layer;
  layer.kind = LayerKind::Scaling;
  layer.inputs = { image.layer };
  layer.weights = weights;
  layer.bias = bias;
  importer.Give(std::move(layer), image);
}

/** Whether one layer is the sigmoid of another. */
bool
IsSigmoidOf(const Importer & importer, const Value & sigmoid, const Value & of)
{
  const NetworkLayer & layer = importer.GetLayerOf(sigmoid);
  return layer.kind == LayerKind::Pointwise && layer.activation.kind == ActivationKind::Sigmoid &&
         layer.inputs[0] == of.layer;
}

/** Two values of one layout; that they have the same extents is what the graph checks. */
int
Combine(Importer & importer, LayerKind kind, const Value & first, const Value & second)
{
  if (first.isFlat != second.isFlat || first.order != second.order)
  {
    throw Problem("one of its operands is flattened or transposed, the other is not");
  }
  NetworkLayer layer;
  layer.kind = kind;
  layer.inputs = { first.layer, second.layer };
  const int channels[2] = { importer.GetChannels(first), importer.GetChannels(second) };
  for (std::size_t i = 0; i < 2; ++i)
  {
    // An attention map of one channel weighs all channels of an image.
    if (channels[i] == 1 && channels[1 - i] > 1 && channels[1 - i] <= MostCopies)
    {
      importer.Charge(static_cast<std::uint64_t>(channels[1 - i]));
      NetworkLayer copies;
      copies.kind = LayerKind::Concatenation;
      copies.inputs.assign(static_cast<std::size_t>(channels[1 - i]), layer.inputs[i]);
      layer.inputs[i] = importer.AddLayer(std::move(copies));
    }
  }
  return importer.AddLayer(std::move(layer));
}

template <LayerKind VKind>
void
Arithmetic(Importer & importer)
{
  const bool isConstant[2] = { importer.IsConstant(0), importer.IsConstant(1) };
  if (isConstant[0] && isConstant[1])
  {
    ComputeNumbers(importer, VKind);
    return;
  }
  if (isConstant[0] || isConstant[1])
  {
    ScaleByConstant(importer, VKind, isConstant[0] ? 1 : 0);
    return;
  }
  const Value & first = importer.GetLayer(0);
  const Value & second = importer.GetLayer(1);
  for (const auto & pair : { std::make_pair(&first, &second), std::make_pair(&second, &first) })
  {
    if (VKind == LayerKind::Product && IsSigmoidOf(importer, *pair.second, *pair.first) &&
        first.order == second.order && first.isFlat == second.isFlat)
    {
      NetworkLayer layer;
      layer.kind = LayerKind::Pointwise;
      layer.inputs = { pair.first->layer };
      layer.activation.kind = ActivationKind::Swish;
      importer.Give(std::move(layer), first);
      return;
    }
  }
  Value result;
  result.isFlat = first.isFlat;
  result.order = first.order;
  result.layer = Combine(importer, VKind, first, second);
  importer.GiveValue(std::move(result));
}

/** Sum: of any number of images. */
void
SumOfAll(Importer & importer)
{
  Value result = importer.GetLayer(0);
  for (int i = 1; i < importer.GetNumberOfInputs(); ++i)
  {
    result.layer = Combine(importer, LayerKind::Sum, result, importer.GetLayer(i));
  }
  importer.GiveValue(std::move(result));
}

/** Floor and Ceil, which serve sizes alone. */
template <bool VUp>
void
Round(Importer & importer)
{
  if (!importer.IsConstant(0))
  {
    throw Problem("it rounds an image, which is not supported");
  }
  Value value = importer.GetNumbers(0);
  for (std::vector<double> & numbers : value.numbers)
  {
    for (double & number : numbers)
    {
      number = VUp ? std::ceil(number) : std::floor(number);
    }
  }
  importer.GiveValue(std::move(value));
}

} // namespace

void
AddPointwiseOperators(OperatorTable & table)
{
  table["Relu"] = Pointwise<ActivationKind::Relu>;
  table["LeakyRelu"] = LeakyRelu;
  table["PRelu"] = PRelu;
  table["Elu"] = Elu;
  table["Selu"] = Selu;
  table["Clip"] = Clip;
  table["Sigmoid"] = Pointwise<ActivationKind::Sigmoid>;
  table["HardSigmoid"] = HardSigmoid;
  table["HardSwish"] = Pointwise<ActivationKind::HardSwish>;
  table["Tanh"] = Pointwise<ActivationKind::Tanh>;
  table["Softplus"] = Pointwise<ActivationKind::Softplus>;
  table["Exp"] = Pointwise<ActivationKind::Exp>;
  table["Log"] = Pointwise<ActivationKind::Log>;
  table["Sqrt"] = Pointwise<ActivationKind::Sqrt>;
  table["Abs"] = Pointwise<ActivationKind::Absolute>;
  table["Neg"] = Pointwise<ActivationKind::Negative>;
  table["Identity"] = Identity;
  table["Dropout"] = Dropout;
  table["Cast"] = Cast;
  table["Add"] = Arithmetic<LayerKind::Sum>;
  table["Sub"] = Arithmetic<LayerKind::Difference>;
  table["Mul"] = Arithmetic<LayerKind::Product>;
  table["Div"] = Arithmetic<LayerKind::Quotient>;
  table["Sum"] = SumOfAll;
  table["Floor"] = Round<false>;
  table["Ceil"] = Round<true>;
}

} // namespace onnx
} // namespace chunkwise
