module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<4x2048x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg1: tensor<4x512x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"model"}]>}, %arg2: tensor<4x2048x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}, {}]>}, %arg3: tensor<4x512x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"model"}]>}, %arg4: tensor<1024x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg5: tensor<1024x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<4x2048x512xf32> {jax.result_info = "result[0]['down']"}, tensor<4x512x2048xf32> {jax.result_info = "result[0]['up']"}, tensor<4x2048x512xf32> {jax.result_info = "result[1]['down']"}, tensor<4x512x2048xf32> {jax.result_info = "result[1]['up']"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x1024x512xf32>
    %c = stablehlo.constant dense<false> : tensor<i1>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<4x1024x2048xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x1024x2048xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %3:7 = stablehlo.while(%iterArg = %arg1, %iterArg_12 = %arg0, %iterArg_13 = %c_1, %iterArg_14 = %arg4, %iterArg_15 = %0, %iterArg_16 = %1, %iterArg_17 = %2) : tensor<4x512x2048xf32>, tensor<4x2048x512xf32>, tensor<i32>, tensor<1024x512xf32>, tensor<4x1024x512xf32>, tensor<4x1024x2048xi1>, tensor<4x1024x2048xf32>
    cond {
      %c_18 = stablehlo.constant dense<4> : tensor<i32>
      %25 = stablehlo.compare LT, %iterArg_13, %c_18, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %25 : tensor<i1>
    } do {
      %25 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_13) : (tensor<4x512x2048xf32>, tensor<i32>) -> tensor<512x2048xf32>
      %26 = func.call @dynamic_index_in_dim_0(%iterArg_12, %iterArg_13) : (tensor<4x2048x512xf32>, tensor<i32>) -> tensor<2048x512xf32>
      %27:4 = func.call @closed_call(%iterArg_14, %25, %26) : (tensor<1024x512xf32>, tensor<512x2048xf32>, tensor<2048x512xf32>) -> (tensor<1024x512xf32>, tensor<1024x512xf32>, tensor<1024x2048xi1>, tensor<1024x2048xf32>)
      %28 = func.call @dynamic_update_index_in_dim(%iterArg_15, %27#1, %iterArg_13) : (tensor<4x1024x512xf32>, tensor<1024x512xf32>, tensor<i32>) -> tensor<4x1024x512xf32>
      %29 = func.call @dynamic_update_index_in_dim_1(%iterArg_16, %27#2, %iterArg_13) : (tensor<4x1024x2048xi1>, tensor<1024x2048xi1>, tensor<i32>) -> tensor<4x1024x2048xi1>
      %30 = func.call @dynamic_update_index_in_dim_2(%iterArg_17, %27#3, %iterArg_13) : (tensor<4x1024x2048xf32>, tensor<1024x2048xf32>, tensor<i32>) -> tensor<4x1024x2048xf32>
      %c_18 = stablehlo.constant dense<1> : tensor<i32>
      %31 = stablehlo.add %iterArg_13, %c_18 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_12, %31, %27#0, %28, %29, %30 : tensor<4x512x2048xf32>, tensor<4x2048x512xf32>, tensor<i32>, tensor<1024x512xf32>, tensor<4x1024x512xf32>, tensor<4x1024x2048xi1>, tensor<4x1024x2048xf32>
    }
    %4 = stablehlo.subtract %3#3, %arg5 : tensor<1024x512xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1024x512xf32>
    %6 = stablehlo.multiply %5, %4 : tensor<1024x512xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_4 = stablehlo.constant dense<5.242880e+05> : tensor<f32>
    %7 = stablehlo.divide %cst_3, %cst_4 : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<1024x512xf32>
    %9 = stablehlo.multiply %8, %6 : tensor<1024x512xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x512x2048xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x2048x512xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %12:9 = stablehlo.while(%iterArg = %arg1, %iterArg_12 = %3#4, %iterArg_13 = %3#5, %iterArg_14 = %arg0, %iterArg_15 = %3#6, %iterArg_16 = %c_7, %iterArg_17 = %9, %iterArg_18 = %10, %iterArg_19 = %11) : tensor<4x512x2048xf32>, tensor<4x1024x512xf32>, tensor<4x1024x2048xi1>, tensor<4x2048x512xf32>, tensor<4x1024x2048xf32>, tensor<i32>, tensor<1024x512xf32>, tensor<4x512x2048xf32>, tensor<4x2048x512xf32>
    cond {
      %c_20 = stablehlo.constant dense<4> : tensor<i32>
      %25 = stablehlo.compare LT, %iterArg_16, %c_20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %25 : tensor<i1>
    } do {
      %c_20 = stablehlo.constant dense<4> : tensor<i32>
      %25 = stablehlo.subtract %c_20, %iterArg_16 : tensor<i32>
      %c_21 = stablehlo.constant dense<1> : tensor<i32>
      %26 = stablehlo.subtract %25, %c_21 : tensor<i32>
      %27 = func.call @dynamic_index_in_dim(%iterArg, %26) : (tensor<4x512x2048xf32>, tensor<i32>) -> tensor<512x2048xf32>
      %28 = func.call @dynamic_index_in_dim_3(%iterArg_12, %26) : (tensor<4x1024x512xf32>, tensor<i32>) -> tensor<1024x512xf32>
      %29 = func.call @dynamic_index_in_dim_4(%iterArg_13, %26) : (tensor<4x1024x2048xi1>, tensor<i32>) -> tensor<1024x2048xi1>
      %30 = func.call @dynamic_index_in_dim_0(%iterArg_14, %26) : (tensor<4x2048x512xf32>, tensor<i32>) -> tensor<2048x512xf32>
      %31 = func.call @dynamic_index_in_dim_5(%iterArg_15, %26) : (tensor<4x1024x2048xf32>, tensor<i32>) -> tensor<1024x2048xf32>
      %32:3 = func.call @closed_call_6(%iterArg_17, %27, %28, %29, %30, %31) : (tensor<1024x512xf32>, tensor<512x2048xf32>, tensor<1024x512xf32>, tensor<1024x2048xi1>, tensor<2048x512xf32>, tensor<1024x2048xf32>) -> (tensor<1024x512xf32>, tensor<512x2048xf32>, tensor<2048x512xf32>)
      %33 = func.call @dynamic_update_index_in_dim_7(%iterArg_18, %32#1, %26) : (tensor<4x512x2048xf32>, tensor<512x2048xf32>, tensor<i32>) -> tensor<4x512x2048xf32>
      %34 = func.call @dynamic_update_index_in_dim_8(%iterArg_19, %32#2, %26) : (tensor<4x2048x512xf32>, tensor<2048x512xf32>, tensor<i32>) -> tensor<4x2048x512xf32>
      %c_22 = stablehlo.constant dense<1> : tensor<i32>
      %35 = stablehlo.add %iterArg_16, %c_22 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %35, %32#0, %33, %34 : tensor<4x512x2048xf32>, tensor<4x1024x512xf32>, tensor<4x1024x2048xi1>, tensor<4x2048x512xf32>, tensor<4x1024x2048xf32>, tensor<i32>, tensor<1024x512xf32>, tensor<4x512x2048xf32>, tensor<4x2048x512xf32>
    }
    %cst_8 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x2048x512xf32>
    %14 = stablehlo.multiply %13, %arg2 : tensor<4x2048x512xf32>
    %15 = stablehlo.add %14, %12#8 : tensor<4x2048x512xf32>
    %cst_9 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x512x2048xf32>
    %17 = stablehlo.multiply %16, %arg3 : tensor<4x512x2048xf32>
    %18 = stablehlo.add %17, %12#7 : tensor<4x512x2048xf32>
    %cst_10 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<4x2048x512xf32>
    %20 = stablehlo.multiply %19, %15 : tensor<4x2048x512xf32>
    %21 = stablehlo.subtract %arg0, %20 : tensor<4x2048x512xf32>
    %cst_11 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<4x512x2048xf32>
    %23 = stablehlo.multiply %22, %18 : tensor<4x512x2048xf32>
    %24 = stablehlo.subtract %arg1, %23 : tensor<4x512x2048xf32>
    return %21, %24, %15, %18 : tensor<4x2048x512xf32>, tensor<4x512x2048xf32>, tensor<4x2048x512xf32>, tensor<4x512x2048xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<4x512x2048xf32>, %arg1: tensor<i32>) -> tensor<512x2048xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 512, 2048] : (tensor<4x512x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x512x2048xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x512x2048xf32>) -> tensor<512x2048xf32>
    return %1 : tensor<512x2048xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<4x2048x512xf32>, %arg1: tensor<i32>) -> tensor<2048x512xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 2048, 512] : (tensor<4x2048x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2048x512xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2048x512xf32>) -> tensor<2048x512xf32>
    return %1 : tensor<2048x512xf32>
  }
  func.func private @closed_call(%arg0: tensor<1024x512xf32>, %arg1: tensor<512x2048xf32>, %arg2: tensor<2048x512xf32>) -> (tensor<1024x512xf32>, tensor<1024x512xf32>, tensor<1024x2048xi1>, tensor<1024x2048xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1024x512xf32>, tensor<512x2048xf32>) -> tensor<1024x2048xf32>
    %1 = call @relu(%0) : (tensor<1024x2048xf32>) -> tensor<1024x2048xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1024x2048xf32>
    %3 = stablehlo.compare GT, %0, %2, FLOAT : (tensor<1024x2048xf32>, tensor<1024x2048xf32>) -> tensor<1024x2048xi1>
    %4 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1024x2048xf32>, tensor<2048x512xf32>) -> tensor<1024x512xf32>
    %5 = stablehlo.add %arg0, %4 : tensor<1024x512xf32>
    return %5, %arg0, %3, %1 : tensor<1024x512xf32>, tensor<1024x512xf32>, tensor<1024x2048xi1>, tensor<1024x2048xf32>
  }
  func.func private @relu(%arg0: tensor<1024x2048xf32>) -> tensor<1024x2048xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1024x2048xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<1024x2048xf32>
    return %1 : tensor<1024x2048xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<4x1024x512xf32>, %arg1: tensor<1024x512xf32>, %arg2: tensor<i32>) -> tensor<4x1024x512xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<1024x512xf32>) -> tensor<1x1024x512xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<4x1024x512xf32>, tensor<1x1024x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x1024x512xf32>
    return %1 : tensor<4x1024x512xf32>
  }
  func.func private @dynamic_update_index_in_dim_1(%arg0: tensor<4x1024x2048xi1>, %arg1: tensor<1024x2048xi1>, %arg2: tensor<i32>) -> tensor<4x1024x2048xi1> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<1024x2048xi1>) -> tensor<1x1024x2048xi1>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<4x1024x2048xi1>, tensor<1x1024x2048xi1>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x1024x2048xi1>
    return %1 : tensor<4x1024x2048xi1>
  }
  func.func private @dynamic_update_index_in_dim_2(%arg0: tensor<4x1024x2048xf32>, %arg1: tensor<1024x2048xf32>, %arg2: tensor<i32>) -> tensor<4x1024x2048xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<1024x2048xf32>) -> tensor<1x1024x2048xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<4x1024x2048xf32>, tensor<1x1024x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x1024x2048xf32>
    return %1 : tensor<4x1024x2048xf32>
  }
  func.func private @dynamic_index_in_dim_3(%arg0: tensor<4x1024x512xf32>, %arg1: tensor<i32>) -> tensor<1024x512xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 1024, 512] : (tensor<4x1024x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x512xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x1024x512xf32>) -> tensor<1024x512xf32>
    return %1 : tensor<1024x512xf32>
  }
  func.func private @dynamic_index_in_dim_4(%arg0: tensor<4x1024x2048xi1>, %arg1: tensor<i32>) -> tensor<1024x2048xi1> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 1024, 2048] : (tensor<4x1024x2048xi1>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x2048xi1>
    %1 = stablehlo.reshape %0 : (tensor<1x1024x2048xi1>) -> tensor<1024x2048xi1>
    return %1 : tensor<1024x2048xi1>
  }
  func.func private @dynamic_index_in_dim_5(%arg0: tensor<4x1024x2048xf32>, %arg1: tensor<i32>) -> tensor<1024x2048xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 1024, 2048] : (tensor<4x1024x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1024x2048xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x1024x2048xf32>) -> tensor<1024x2048xf32>
    return %1 : tensor<1024x2048xf32>
  }
  func.func private @closed_call_6(%arg0: tensor<1024x512xf32>, %arg1: tensor<512x2048xf32>, %arg2: tensor<1024x512xf32>, %arg3: tensor<1024x2048xi1>, %arg4: tensor<2048x512xf32>, %arg5: tensor<1024x2048xf32>) -> (tensor<1024x512xf32>, tensor<512x2048xf32>, tensor<2048x512xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg5, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1024x512xf32>, tensor<1024x2048xf32>) -> tensor<512x2048xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<512x2048xf32>) -> tensor<2048x512xf32>
    %2 = stablehlo.dot_general %arg0, %arg4, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1024x512xf32>, tensor<2048x512xf32>) -> tensor<1024x2048xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1024x2048xf32>
    %4 = stablehlo.select %arg3, %2, %3 : tensor<1024x2048xi1>, tensor<1024x2048xf32>
    %5 = stablehlo.dot_general %4, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1024x2048xf32>, tensor<1024x512xf32>) -> tensor<2048x512xf32>
    %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<2048x512xf32>) -> tensor<512x2048xf32>
    %7 = stablehlo.dot_general %4, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1024x2048xf32>, tensor<512x2048xf32>) -> tensor<1024x512xf32>
    %8 = stablehlo.add %arg0, %7 : tensor<1024x512xf32>
    return %8, %6, %1 : tensor<1024x512xf32>, tensor<512x2048xf32>, tensor<2048x512xf32>
  }
  func.func private @dynamic_update_index_in_dim_7(%arg0: tensor<4x512x2048xf32>, %arg1: tensor<512x2048xf32>, %arg2: tensor<i32>) -> tensor<4x512x2048xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<512x2048xf32>) -> tensor<1x512x2048xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<4x512x2048xf32>, tensor<1x512x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x512x2048xf32>
    return %1 : tensor<4x512x2048xf32>
  }
  func.func private @dynamic_update_index_in_dim_8(%arg0: tensor<4x2048x512xf32>, %arg1: tensor<2048x512xf32>, %arg2: tensor<i32>) -> tensor<4x2048x512xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<2048x512xf32>) -> tensor<1x2048x512xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<4x2048x512xf32>, tensor<1x2048x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x2048x512xf32>
    return %1 : tensor<4x2048x512xf32>
  }
}

