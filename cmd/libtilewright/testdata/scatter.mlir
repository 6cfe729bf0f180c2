func.func @main(%g: tensor<40x64xf32>, %s: tensor<40x64xf32>, %i: tensor<40x1xi32>) -> tensor<1000x64xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<1000x64xf32>
  %u = stablehlo.multiply %g, %s : tensor<40x64xf32>
  %r = "stablehlo.scatter"(%t, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<1000x64xf32>, tensor<40x1xi32>, tensor<40x64xf32>) -> tensor<1000x64xf32>
  %n = stablehlo.negate %r : tensor<1000x64xf32>
  return %n : tensor<1000x64xf32>
}
