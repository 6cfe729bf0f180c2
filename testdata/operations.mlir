// abs
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.abs %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// acos
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = chlo.acos %arg0 : tensor<5x13xf32> -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// acosh
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = chlo.acosh %arg0 : tensor<5x13xf32> -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// add
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// after-all
module @m {
  func.func public @main() -> !stablehlo.token {
    %0 = stablehlo.after_all  : !stablehlo.token
    return %0 : !stablehlo.token
  }
}
// -----
// all-gather
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<16xf32> {
    %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<16xf32>
    return %0 : tensor<16xf32>
  }
}
// -----
// all-reduce
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----
// all-to-all
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = "stablehlo.all_to_all"(%arg0) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----
// and
module @m {
  func.func public @main(%arg0: tensor<5x13xi32>, %arg1: tensor<5x13xi32>) -> tensor<5x13xi32> {
    %0 = stablehlo.and %arg0, %arg1 : tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
// -----
// asin
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = chlo.asin %arg0 : tensor<5x13xf32> -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// asinh
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = chlo.asinh %arg0 : tensor<5x13xf32> -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// atan2
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.atan2 %arg0, %arg1 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// atanh
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = chlo.atanh %arg0 : tensor<5x13xf32> -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// batch-norm-grad
module @m {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>, %arg3: tensor<4xf32>, %arg4: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0, %1, %2 = "stablehlo.batch_norm_grad"(%arg0, %arg1, %arg2, %arg3, %arg4) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
    return %0, %1, %2 : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
// -----
// batch-norm-inference
module @m {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>, %arg3: tensor<4xf32>, %arg4: tensor<4xf32>) -> tensor<8x4xf32> {
    %0 = "stablehlo.batch_norm_inference"(%arg0, %arg1, %arg2, %arg3, %arg4) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
// -----
// batch-norm-training
module @m {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0, %1, %2 = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
    return %0, %1, %2 : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
// -----
// bitcast-convert
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xi32> {
    %0 = stablehlo.bitcast_convert %arg0 : (tensor<5x13xf32>) -> tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
// -----
// broadcast
module @m {
  func.func public @main(%arg0: tensor<13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<13xf32>) -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// call
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.negate %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----
// cbrt
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.cbrt %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// ceil
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.ceil %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// cholesky
module @m {
  func.func public @main(%arg0: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.cholesky %arg0, lower = true : tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}
// -----
// clamp
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>, %arg2: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.clamp %arg0, %arg1, %arg2 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// collective-broadcast
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----
// collective-permute
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----
// compare
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xi1> {
    %0 = stablehlo.compare  LE, %arg0, %arg1,  FLOAT : (tensor<5x13xf32>, tensor<5x13xf32>) -> tensor<5x13xi1>
    return %0 : tensor<5x13xi1>
  }
}
// -----
// complex
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xcomplex<f32>> {
    %0 = stablehlo.complex %arg0, %arg1 : tensor<5x13xcomplex<f32>>
    return %0 : tensor<5x13xcomplex<f32>>
  }
}
// -----
// concatenate
module @m {
  func.func public @main(%arg0: tensor<5x4xf32>, %arg1: tensor<5x9xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<5x4xf32>, tensor<5x9xf32>) -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// conditional
module @m {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<i1>) -> tensor<8xf32> {
    %0 = "stablehlo.if"(%arg1) ({
      %1 = stablehlo.negate %arg0 : tensor<8xf32>
      stablehlo.return %1 : tensor<8xf32>
    }, {
      stablehlo.return %arg0 : tensor<8xf32>
    }) : (tensor<i1>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----
// constant
module @m {
  func.func public @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %cst = stablehlo.constant dense<[1.0, 0.0, 1.0]> : tensor<3xf32>
    %0 = stablehlo.multiply %arg0, %cst : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
// -----
// convert
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xi32> {
    %0 = stablehlo.convert %arg0 : (tensor<5x13xf32>) -> tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
// -----
// convolution
module @m {
  func.func public @main(%arg0: tensor<2x9x4xf32>, %arg1: tensor<3x4x6xf32>) -> tensor<2x7x6xf32> {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x9x4xf32>, tensor<3x4x6xf32>) -> tensor<2x7x6xf32>
    return %0 : tensor<2x7x6xf32>
  }
}
// -----
// cosh
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = chlo.cosh %arg0 : tensor<5x13xf32> -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// cosine
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.cosine %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// count-leading-zeros
module @m {
  func.func public @main(%arg0: tensor<5x13xi32>) -> tensor<5x13xi32> {
    %0 = stablehlo.count_leading_zeros %arg0 : tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
// -----
// custom-call
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.custom_call @foo(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----
// divide
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// dot
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<13x7xf32>) -> tensor<5x7xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<5x13xf32>, tensor<13x7xf32>) -> tensor<5x7xf32>
    return %0 : tensor<5x7xf32>
  }
}
// -----
// dynamic-slice
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<2x6xf32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %arg2, sizes = [2, 6] : (tensor<5x13xf32>, tensor<i32>, tensor<i32>) -> tensor<2x6xf32>
    return %0 : tensor<2x6xf32>
  }
}
// -----
// dynamic-update-slice
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<2x6xf32>, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<5x13xf32> {
    %0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg3 : (tensor<5x13xf32>, tensor<2x6xf32>, tensor<i32>, tensor<i32>) -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// erf
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = chlo.erf %arg0 : tensor<5x13xf32> -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// erf-inv
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = chlo.erf_inv %arg0 : tensor<5x13xf32> -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// exponential
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.exponential %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// exponential-minus-one
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.exponential_minus_one %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// fft
module @m {
  func.func public @main(%arg0: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type =  FFT, length = [8] : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>
    return %0 : tensor<8xcomplex<f32>>
  }
}
// -----
// floor
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.floor %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// gather
module @m {
  func.func public @main(%arg0: tensor<9x4xf32>, %arg1: tensor<5x1xi32>) -> tensor<5x4xf32> {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<9x4xf32>, tensor<5x1xi32>) -> tensor<5x4xf32>
    return %0 : tensor<5x4xf32>
  }
}
// -----
// get-dimension-size
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<i32> {
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<8xf32>) -> tensor<i32>
    return %0 : tensor<i32>
  }
}
// -----
// get-tuple-element
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<5x13xf32>, tensor<5x13xf32>>
    %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<5x13xf32>, tensor<5x13xf32>>) -> tensor<5x13xf32>
    return %1 : tensor<5x13xf32>
  }
}
// -----
// imag
module @m {
  func.func public @main(%arg0: tensor<5x13xcomplex<f32>>) -> tensor<5x13xf32> {
    %0 = stablehlo.imag %arg0 : (tensor<5x13xcomplex<f32>>) -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// infeed
module @m {
  func.func public @main() -> tensor<8xf32> {
    %0 = stablehlo.create_token : !stablehlo.token
    %1:2 = "stablehlo.infeed"(%0) <{infeed_config = "", layout = [[0]]}> : (!stablehlo.token) -> (tensor<8xf32>, !stablehlo.token)
    return %1#0 : tensor<8xf32>
  }
}
// -----
// iota
module @m {
  func.func public @main() -> tensor<5x13xf32> {
    %0 = stablehlo.iota dim = 1 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// is-finite
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xi1> {
    %0 = stablehlo.is_finite %arg0 : (tensor<5x13xf32>) -> tensor<5x13xi1>
    return %0 : tensor<5x13xi1>
  }
}
// -----
// log
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.log %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// log-plus-one
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.log_plus_one %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// logistic
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.logistic %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// map
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<5x13xf32>, tensor<5x13xf32>) -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// maximum
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.maximum %arg0, %arg1 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// minimum
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.minimum %arg0, %arg1 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// multiply
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.multiply %arg0, %arg1 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// negate
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.negate %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// not
module @m {
  func.func public @main(%arg0: tensor<5x13xi32>) -> tensor<5x13xi32> {
    %0 = stablehlo.not %arg0 : tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
// -----
// optimization-barrier
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.optimization_barrier %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// or
module @m {
  func.func public @main(%arg0: tensor<5x13xi32>, %arg1: tensor<5x13xi32>) -> tensor<5x13xi32> {
    %0 = stablehlo.or %arg0, %arg1 : tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
// -----
// outfeed
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> !stablehlo.token {
    %0 = stablehlo.create_token : !stablehlo.token
    %1 = "stablehlo.outfeed"(%arg0, %0) <{outfeed_config = ""}> : (tensor<8xf32>, !stablehlo.token) -> !stablehlo.token
    return %1 : !stablehlo.token
  }
}
// -----
// pad
module @m {
  func.func public @main(%arg0: tensor<5x9xf32>, %arg1: tensor<f32>) -> tensor<7x19xf32> {
    %0 = stablehlo.pad %arg0, %arg1, low = [1, 3], high = [1, -1], interior = [0, 1] : (tensor<5x9xf32>, tensor<f32>) -> tensor<7x19xf32>
    return %0 : tensor<7x19xf32>
  }
}
// -----
// partition-id
module @m {
  func.func public @main() -> tensor<ui32> {
    %0 = stablehlo.partition_id : tensor<ui32>
    return %0 : tensor<ui32>
  }
}
// -----
// popcnt
module @m {
  func.func public @main(%arg0: tensor<5x13xi32>) -> tensor<5x13xi32> {
    %0 = stablehlo.popcnt %arg0 : tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
// -----
// power
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.power %arg0, %arg1 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// real
module @m {
  func.func public @main(%arg0: tensor<5x13xcomplex<f32>>) -> tensor<5x13xf32> {
    %0 = stablehlo.real %arg0 : (tensor<5x13xcomplex<f32>>) -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// recv
module @m {
  func.func public @main() -> tensor<8xf32> {
    %0 = stablehlo.create_token : !stablehlo.token
    %1:2 = "stablehlo.recv"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (!stablehlo.token) -> (tensor<8xf32>, !stablehlo.token)
    return %1#0 : tensor<8xf32>
  }
}
// -----
// reduce
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<f32>) -> tensor<5xf32> {
    %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : (tensor<5x13xf32>, tensor<f32>) -> tensor<5xf32>
    return %0 : tensor<5xf32>
  }
}
// -----
// reduce-precision
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.reduce_precision %arg0, format = e3m0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// reduce-scatter
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.reduce_scatter"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----
// reduce-window
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<f32>) -> tensor<4x7xf32> {
    %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<5x13xf32>, tensor<f32>) -> tensor<4x7xf32>
    return %0 : tensor<4x7xf32>
  }
}
// -----
// remainder
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.remainder %arg0, %arg1 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// replica-id
module @m {
  func.func public @main() -> tensor<ui32> {
    %0 = stablehlo.replica_id : tensor<ui32>
    return %0 : tensor<ui32>
  }
}
// -----
// reshape
module @m {
  func.func public @main(%arg0: tensor<5x12xf32>) -> tensor<15x4xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<5x12xf32>) -> tensor<15x4xf32>
    return %0 : tensor<15x4xf32>
  }
}
// -----
// reverse
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.reverse %arg0, dims = [1] : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// rng
module @m {
  func.func public @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<8xf32> {
    %c = stablehlo.constant dense<8> : tensor<1xi64>
    %0 = stablehlo.rng %arg0, %arg1, %c, distribution =  UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----
// rng-bit-generator
module @m {
  func.func public @main(%arg0: tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>) {
    %output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm =  THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
    return %output_state, %output : tensor<2xui64>, tensor<8xui32>
  }
}
// -----
// round-nearest-afz
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.round_nearest_afz %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// round-nearest-even
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// rsqrt
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.rsqrt %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// scatter
module @m {
  func.func public @main(%arg0: tensor<9xf32>, %arg1: tensor<5x1xi32>, %arg2: tensor<5xf32>) -> tensor<9xf32> {
    %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<9xf32>, tensor<5x1xi32>, tensor<5xf32>) -> tensor<9xf32>
    return %0 : tensor<9xf32>
  }
}
// -----
// select
module @m {
  func.func public @main(%arg0: tensor<5x13xi1>, %arg1: tensor<5x13xf32>, %arg2: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<5x13xi1>, tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// select-and-scatter
module @m {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<4xf32>, %arg2: tensor<f32>) -> tensor<8xf32> {
    %0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %arg2) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare  GE, %a, %b,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
// -----
// send
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> !stablehlo.token {
    %0 = stablehlo.create_token : !stablehlo.token
    %1 = "stablehlo.send"(%arg0, %0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = false, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>, !stablehlo.token) -> !stablehlo.token
    return %1 : !stablehlo.token
  }
}
// -----
// set-dimension-size
module @m {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<8>> {
    %0 = stablehlo.set_dimension_size %arg0, %arg1, dim = 0 : (tensor<8xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<8>>
    return %0 : tensor<?xf32, #stablehlo.bounds<8>>
  }
}
// -----
// shift-left
module @m {
  func.func public @main(%arg0: tensor<5x13xi32>, %arg1: tensor<5x13xi32>) -> tensor<5x13xi32> {
    %0 = stablehlo.shift_left %arg0, %arg1 : tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
// -----
// shift-right-arithmetic
module @m {
  func.func public @main(%arg0: tensor<5x13xi32>, %arg1: tensor<5x13xi32>) -> tensor<5x13xi32> {
    %0 = stablehlo.shift_right_arithmetic %arg0, %arg1 : tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
// -----
// shift-right-logical
module @m {
  func.func public @main(%arg0: tensor<5x13xi32>, %arg1: tensor<5x13xi32>) -> tensor<5x13xi32> {
    %0 = stablehlo.shift_right_logical %arg0, %arg1 : tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
// -----
// sign
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.sign %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// sine
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.sine %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// sinh
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = chlo.sinh %arg0 : tensor<5x13xf32> -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// slice
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<3x5xf32> {
    %0 = stablehlo.slice %arg0 [1:4, 2:11:2] : (tensor<5x13xf32>) -> tensor<3x5xf32>
    return %0 : tensor<3x5xf32>
  }
}
// -----
// sort
module @m {
  func.func public @main(%arg0: tensor<13xf32>) -> tensor<13xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare  LT, %a, %b,  FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }) : (tensor<13xf32>) -> tensor<13xf32>
    return %0 : tensor<13xf32>
  }
}
// -----
// sqrt
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.sqrt %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// subtract
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.subtract %arg0, %arg1 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// tan
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = chlo.tan %arg0 : tensor<5x13xf32> -> tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// tanh
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<5x13xf32>
    return %0 : tensor<5x13xf32>
  }
}
// -----
// topk
module @m {
  func.func public @main(%arg0: tensor<13xf32>) -> (tensor<3xf32>, tensor<3xi32>) {
    %values, %indices = chlo.top_k(%arg0, k = 3) : tensor<13xf32> -> (tensor<3xf32>, tensor<3xi32>)
    return %values, %indices : tensor<3xf32>, tensor<3xi32>
  }
}
// -----
// transpose
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>) -> tensor<13x5xf32> {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<5x13xf32>) -> tensor<13x5xf32>
    return %0 : tensor<13x5xf32>
  }
}
// -----
// triangular-solve
module @m {
  func.func public @main(%arg0: tensor<4x4xf32>, %arg1: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %0 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    return %0 : tensor<4x2xf32>
  }
}
// -----
// tuple
module @m {
  func.func public @main(%arg0: tensor<5x13xf32>, %arg1: tensor<5x13xf32>) -> tensor<5x13xf32> {
    %0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<5x13xf32>, tensor<5x13xf32>>
    %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<5x13xf32>, tensor<5x13xf32>>) -> tensor<5x13xf32>
    return %1 : tensor<5x13xf32>
  }
}
// -----
// while
module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.while(%iterArg = %arg0) : tensor<8xf32>
     cond {
      %c = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %1 = stablehlo.negate %iterArg : tensor<8xf32>
      stablehlo.return %1 : tensor<8xf32>
    }
    return %0 : tensor<8xf32>
  }
}
// -----
// xor
module @m {
  func.func public @main(%arg0: tensor<5x13xi32>, %arg1: tensor<5x13xi32>) -> tensor<5x13xi32> {
    %0 = stablehlo.xor %arg0, %arg1 : tensor<5x13xi32>
    return %0 : tensor<5x13xi32>
  }
}
