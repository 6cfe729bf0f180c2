module @jit_layernorm attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<48x96xf32>, %arg1: tensor<96xf32>, %arg2: tensor<96xf32>) -> (tensor<48x96xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<9.600000e+01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<48x96xf32>, tensor<f32>) -> tensor<48xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<48xf32>
    %2 = stablehlo.divide %0, %1 : tensor<48xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<48xf32>) -> tensor<48x96xf32>
    %4 = stablehlo.subtract %arg0, %3 : tensor<48x96xf32>
    %5 = stablehlo.multiply %4, %4 : tensor<48x96xf32>
    %6 = stablehlo.reduce(%5 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<48x96xf32>, tensor<f32>) -> tensor<48xf32>
    %7 = stablehlo.divide %6, %1 : tensor<48xf32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<48xf32>
    %9 = stablehlo.add %7, %8 : tensor<48xf32>
    %10 = stablehlo.rsqrt %9 : tensor<48xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<48xf32>) -> tensor<48x96xf32>
    %12 = stablehlo.multiply %4, %11 : tensor<48x96xf32>
    %13 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<96xf32>) -> tensor<48x96xf32>
    %14 = stablehlo.multiply %12, %13 : tensor<48x96xf32>
    %15 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<96xf32>) -> tensor<48x96xf32>
    %16 = stablehlo.add %14, %15 : tensor<48x96xf32>
    return %16 : tensor<48x96xf32>
  }
}
