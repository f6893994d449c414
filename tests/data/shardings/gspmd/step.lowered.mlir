module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4096x2048xf32> {jax.buffer_donor = true, mhlo.sharding = "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"}, %arg1: tensor<2048x4096xf32> {jax.buffer_donor = true, mhlo.sharding = "{replicated}"}, %arg2: tensor<4096x2048xf32> {jax.buffer_donor = true, mhlo.sharding = "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"}, %arg3: tensor<2048x4096xf32> {jax.buffer_donor = true, mhlo.sharding = "{replicated}"}, %arg4: tensor<64x2048xf32> {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"}) -> (tensor<4096x2048xf32> {jax.result_info = "result[0]['split']"}, tensor<2048x4096xf32> {jax.result_info = "result[0]['whole']"}, tensor<4096x2048xf32> {jax.result_info = "result[1]['split']"}, tensor<2048x4096xf32> {jax.result_info = "result[1]['whole']"}) {
    %0 = stablehlo.dot_general %arg4, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x2048xf32>, tensor<2048x4096xf32>) -> tensor<64x4096xf32>
    %1 = stablehlo.tanh %0 : tensor<64x4096xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<64x4096xf32>
    %3 = stablehlo.add %2, %1 : tensor<64x4096xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<64x4096xf32>
    %5 = stablehlo.subtract %4, %1 : tensor<64x4096xf32>
    %6 = stablehlo.multiply %3, %5 : tensor<64x4096xf32>
    %7 = stablehlo.dot_general %1, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x4096xf32>, tensor<4096x2048xf32>) -> tensor<64x2048xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x2048xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<64x2048xf32>
    %10 = stablehlo.dot_general %9, %1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x2048xf32>, tensor<64x4096xf32>) -> tensor<2048x4096xf32>
    %11 = stablehlo.transpose %10, dims = [1, 0] : (tensor<2048x4096xf32>) -> tensor<4096x2048xf32>
    %12 = stablehlo.dot_general %9, %arg0, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<64x2048xf32>, tensor<4096x2048xf32>) -> tensor<64x4096xf32>
    %13 = stablehlo.multiply %12, %6 : tensor<64x4096xf32>
    %14 = stablehlo.dot_general %13, %arg4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x4096xf32>, tensor<64x2048xf32>) -> tensor<4096x2048xf32>
    %15 = stablehlo.transpose %14, dims = [1, 0] : (tensor<4096x2048xf32>) -> tensor<2048x4096xf32>
    %cst_3 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4096x2048xf32>
    %17 = stablehlo.multiply %16, %arg2 : tensor<4096x2048xf32>
    %18 = stablehlo.add %17, %11 : tensor<4096x2048xf32>
    %cst_4 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2048x4096xf32>
    %20 = stablehlo.multiply %19, %arg3 : tensor<2048x4096xf32>
    %21 = stablehlo.add %20, %15 : tensor<2048x4096xf32>
    %cst_5 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4096x2048xf32>
    %23 = stablehlo.multiply %22, %18 : tensor<4096x2048xf32>
    %24 = stablehlo.subtract %arg0, %23 : tensor<4096x2048xf32>
    %cst_6 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2048x4096xf32>
    %26 = stablehlo.multiply %25, %21 : tensor<2048x4096xf32>
    %27 = stablehlo.subtract %arg1, %26 : tensor<2048x4096xf32>
    return %24, %27, %18, %21 : tensor<4096x2048xf32>, tensor<2048x4096xf32>, tensor<4096x2048xf32>, tensor<2048x4096xf32>
  }
}
