module @jit_power_iteration attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<24x24xf32>, %arg1: tensor<24xf32>) -> (tensor<24xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %c_1 = stablehlo.constant dense<10> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<24x24xf32>) -> tensor<24x24xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<24x24xf32>
    %2:2 = stablehlo.while(%iterArg = %c, %iterArg_2 = %arg1) : tensor<i32>, tensor<24xf32>
     cond {
      %4 = stablehlo.compare  LT, %iterArg, %c_1,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4 = stablehlo.dot_general %1, %iterArg_2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<24x24xf32>, tensor<24xf32>) -> tensor<24xf32>
      %5 = stablehlo.multiply %4, %4 : tensor<24xf32>
      %6 = stablehlo.reduce(%5 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<24xf32>, tensor<f32>) -> tensor<f32>
      %7 = stablehlo.rsqrt %6 : tensor<f32>
      %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<24xf32>
      %9 = stablehlo.multiply %4, %8 : tensor<24xf32>
      %10 = stablehlo.add %iterArg, %c_0 : tensor<i32>
      stablehlo.return %10, %9 : tensor<i32>, tensor<24xf32>
    }
    %3 = stablehlo.negate %2#1 : tensor<24xf32>
    return %3 : tensor<24xf32>
  }
}
