module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x5xf32>, %arg1: tensor<1x8xf32>, %arg2: tensor<2x32x3x16xui8>) -> (tensor<18x9xf32> {jax.result_info = "result[0]"}, tensor<7x4x1xf32> {jax.result_info = "result[1]"}, tensor<7x4x1xf32> {jax.result_info = "result[2]"}) {
    %c = stablehlo.constant dense<[0, 2, 1]> : tensor<3xi32>
    %c_0 = stablehlo.constant dense<[2, 4, 5, 5, 6, 6, 6]> : tensor<7xi32>
    %0 = call @_flip(%arg2) : (tensor<2x32x3x16xui8>) -> tensor<2x32x3x16xui8>
    %1 = stablehlo.reshape %arg0 : (tensor<16x5xf32>) -> tensor<80xf32>
    %2 = call @argmax(%1) : (tensor<80xf32>) -> tensor<i32>
    %c_1 = stablehlo.constant dense<16> : tensor<i32>
    %3 = call @remainder(%2, %c_1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %4 = stablehlo.reshape %arg0 : (tensor<16x5xf32>) -> tensor<80xf32>
    %5 = call @argmax(%4) : (tensor<80xf32>) -> tensor<i32>
    %c_2 = stablehlo.constant dense<5> : tensor<i32>
    %6 = call @remainder(%5, %c_2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.compare LT, %3, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_4 = stablehlo.constant dense<16> : tensor<i32>
    %8 = stablehlo.add %3, %c_4 : tensor<i32>
    %9 = stablehlo.select %7, %8, %3 : tensor<i1>, tensor<i32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %10 = stablehlo.compare LT, %6, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_6 = stablehlo.constant dense<5> : tensor<i32>
    %11 = stablehlo.add %6, %c_6 : tensor<i32>
    %12 = stablehlo.select %10, %11, %6 : tensor<i1>, tensor<i32>
    %13 = stablehlo.dynamic_slice %arg0, %9, %12, sizes = [8, 2] : (tensor<16x5xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<8x2xf32>) -> tensor<8x2x1xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<8x2x1xf32>) -> tensor<8x2x2xf32>
    %16 = stablehlo.reshape %15 : (tensor<8x2x2xf32>) -> tensor<32xf32>
    %17 = call @argmax_0(%16) : (tensor<32xf32>) -> tensor<i32>
    %c_7 = stablehlo.constant dense<8> : tensor<i32>
    %18 = call @remainder(%17, %c_7) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %19 = stablehlo.reshape %15 : (tensor<8x2x2xf32>) -> tensor<32xf32>
    %20 = call @argmax_0(%19) : (tensor<32xf32>) -> tensor<i32>
    %c_8 = stablehlo.constant dense<2> : tensor<i32>
    %21 = call @remainder(%20, %c_8) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %22 = stablehlo.reshape %15 : (tensor<8x2x2xf32>) -> tensor<32xf32>
    %23 = call @argmax_0(%22) : (tensor<32xf32>) -> tensor<i32>
    %c_9 = stablehlo.constant dense<2> : tensor<i32>
    %24 = call @remainder(%23, %c_9) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %c_10 = stablehlo.constant dense<0> : tensor<i32>
    %25 = stablehlo.compare LT, %18, %c_10, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_11 = stablehlo.constant dense<8> : tensor<i32>
    %26 = stablehlo.add %18, %c_11 : tensor<i32>
    %27 = stablehlo.select %25, %26, %18 : tensor<i1>, tensor<i32>
    %c_12 = stablehlo.constant dense<0> : tensor<i32>
    %28 = stablehlo.compare LT, %21, %c_12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_13 = stablehlo.constant dense<2> : tensor<i32>
    %29 = stablehlo.add %21, %c_13 : tensor<i32>
    %30 = stablehlo.select %28, %29, %21 : tensor<i1>, tensor<i32>
    %c_14 = stablehlo.constant dense<0> : tensor<i32>
    %31 = stablehlo.compare LT, %24, %c_14, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_15 = stablehlo.constant dense<2> : tensor<i32>
    %32 = stablehlo.add %24, %c_15 : tensor<i32>
    %33 = stablehlo.select %31, %32, %24 : tensor<i1>, tensor<i32>
    %34 = stablehlo.dynamic_slice %15, %27, %30, %33, sizes = [4, 1, 1] : (tensor<8x2x2xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x1x1xf32>
    %35 = stablehlo.abs %34 : tensor<4x1x1xf32>
    %36 = stablehlo.log_plus_one %35 : tensor<4x1x1xf32>
    %c_16 = stablehlo.constant dense<-50> : tensor<i32>
    %c_17 = stablehlo.constant dense<50> : tensor<i32>
    %37 = call @clip(%36, %c_16, %c_17) : (tensor<4x1x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1x1xf32>
    %38 = call @_take(%37, %c) : (tensor<4x1x1xf32>, tensor<3xi32>) -> tensor<3x1x1xf32>
    %39 = stablehlo.minimum %34, %37 : tensor<4x1x1xf32>
    %40 = stablehlo.iota dim = 0 : tensor<1xi32>
    %c_18 = stablehlo.constant dense<2> : tensor<i32>
    %41 = call @remainder_2(%40, %c_18) : (tensor<1xi32>, tensor<i32>) -> tensor<1xi32>
    %c_19 = stablehlo.constant dense<0> : tensor<i32>
    %42 = stablehlo.broadcast_in_dim %c_19, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %43 = stablehlo.compare EQ, %41, %42, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %44 = call @_where_3(%43, %39, %cst) : (tensor<1xi1>, tensor<4x1x1xf32>, tensor<f32>) -> tensor<4x1x1xf32>
    %45 = call @argmax_4(%arg0) : (tensor<16x5xf32>) -> tensor<16xi32>
    %46 = stablehlo.abs %arg1 : tensor<1x8xf32>
    %cst_20 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<1x8xf32>
    %48 = stablehlo.add %46, %47 : tensor<1x8xf32>
    %cst_21 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<1x8xf32>
    %50 = stablehlo.divide %49, %48 : tensor<1x8xf32>
    %c_22 = stablehlo.constant dense<-100> : tensor<i32>
    %c_23 = stablehlo.constant dense<100> : tensor<i32>
    %51 = call @clip_5(%50, %c_22, %c_23) : (tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %cst_24 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %52 = stablehlo.pad %arg0, %cst_24, low = [0, -1], high = [2, 1], interior = [0, 1] : (tensor<16x5xf32>, tensor<f32>) -> tensor<18x9xf32>
    %cst_25 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %53 = stablehlo.pad %44, %cst_25, low = [1, 1, 0], high = [2, 2, 0], interior = [0, 1, 0] : (tensor<4x1x1xf32>, tensor<f32>) -> tensor<7x4x1xf32>
    %c_26 = stablehlo.constant dense<0> : tensor<i32>
    %54 = stablehlo.broadcast_in_dim %c_26, dims = [] : (tensor<i32>) -> tensor<7xi32>
    %55 = stablehlo.compare LT, %c_0, %54, SIGNED : (tensor<7xi32>, tensor<7xi32>) -> tensor<7xi1>
    %c_27 = stablehlo.constant dense<7> : tensor<i32>
    %56 = stablehlo.broadcast_in_dim %c_27, dims = [] : (tensor<i32>) -> tensor<7xi32>
    %57 = stablehlo.add %c_0, %56 : tensor<7xi32>
    %58 = stablehlo.select %55, %57, %c_0 : tensor<7xi1>, tensor<7xi32>
    %59 = stablehlo.broadcast_in_dim %58, dims = [0] : (tensor<7xi32>) -> tensor<7x1xi32>
    %60 = "stablehlo.scatter"(%53, %59, %53) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %61 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %61 : tensor<f32>
    }) : (tensor<7x4x1xf32>, tensor<7x1xi32>, tensor<7x4x1xf32>) -> tensor<7x4x1xf32>
    return %52, %53, %60 : tensor<18x9xf32>, tensor<7x4x1xf32>, tensor<7x4x1xf32>
  }
  func.func private @_flip(%arg0: tensor<2x32x3x16xui8>) -> tensor<2x32x3x16xui8> {
    %0 = stablehlo.reverse %arg0, dims = [3] : tensor<2x32x3x16xui8>
    return %0 : tensor<2x32x3x16xui8>
  }
  func.func private @argmax(%arg0: tensor<80xf32>) -> tensor<i32> {
    %0 = stablehlo.iota dim = 0 : tensor<80xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [0] : (tensor<80xf32>, tensor<80xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<i32>
  }
  func.func private @remainder(%arg0: tensor<i32>, %arg1: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where(%1, %c_0, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.remainder %arg0, %2 : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.compare NE, %3, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.compare LT, %3, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.compare NE, %5, %6, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %8 = stablehlo.and %7, %4 : tensor<i1>
    %9 = stablehlo.add %3, %2 : tensor<i32>
    %10 = stablehlo.select %8, %9, %3 : tensor<i1>, tensor<i32>
    return %10 : tensor<i32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @argmax_0(%arg0: tensor<32xf32>) -> tensor<i32> {
    %0 = stablehlo.iota dim = 0 : tensor<32xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [0] : (tensor<32xf32>, tensor<32xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<i32>
  }
  func.func private @clip(%arg0: tensor<4x1x1xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<4x1x1xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x1x1xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<4x1x1xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4x1x1xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<4x1x1xf32>
    return %5 : tensor<4x1x1xf32>
  }
  func.func private @_take(%arg0: tensor<4x1x1xf32>, %arg1: tensor<3xi32>) -> tensor<3x1x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<3xi32>
    %4 = call @_where_1(%1, %3, %arg1) : (tensor<3xi1>, tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %c_1 = stablehlo.constant dense<3> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<3x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<3x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<3x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [1] : (tensor<3x1xi1>, tensor<i1>) -> tensor<3xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x1x1xf32>, tensor<3x1xi32>) -> tensor<3x1x1xf32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<3xi1>) -> tensor<3x1x1xi1>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x1x1xf32>
    %16 = stablehlo.select %14, %13, %15 : tensor<3x1x1xi1>, tensor<3x1x1xf32>
    return %16 : tensor<3x1x1xf32>
  }
  func.func private @_where_1(%arg0: tensor<3xi1>, %arg1: tensor<3xi32>, %arg2: tensor<3xi32>) -> tensor<3xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<3xi1>, tensor<3xi32>
    return %0 : tensor<3xi32>
  }
  func.func private @remainder_2(%arg0: tensor<1xi32>, %arg1: tensor<i32>) -> tensor<1xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where(%1, %c_0, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<1xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<1xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<1xi1>, tensor<1xi1>) -> tensor<1xi1>
    %12 = stablehlo.and %11, %6 : tensor<1xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %14 = stablehlo.add %4, %13 : tensor<1xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<1xi1>, tensor<1xi32>
    return %15 : tensor<1xi32>
  }
  func.func private @_where_3(%arg0: tensor<1xi1>, %arg1: tensor<4x1x1xf32>, %arg2: tensor<f32>) -> tensor<4x1x1xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [2] : (tensor<1xi1>) -> tensor<4x1x1xi1>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<4x1x1xf32>
    %2 = stablehlo.select %0, %arg1, %1 : tensor<4x1x1xi1>, tensor<4x1x1xf32>
    return %2 : tensor<4x1x1xf32>
  }
  func.func private @argmax_4(%arg0: tensor<16x5xf32>) -> tensor<16xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<16x5xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<16x5xf32>, tensor<16x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<16xf32>, tensor<16xi32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<16xi32>
  }
  func.func private @clip_5(%arg0: tensor<1x8xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<1x8xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x8xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<1x8xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<1x8xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<1x8xf32>
    return %5 : tensor<1x8xf32>
  }
}
