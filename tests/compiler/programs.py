"""A program in StableHLO whose bytes on each mesh are easy to work out."""

STEP = """\
module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(
      %x: tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
      %w: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
      %v: tensor<128x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
      -> (tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<32x64xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
    %y = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0]
      : (tensor<32x128xf32>, tensor<128x16xf32>) -> tensor<32x16xf32>
    return %y : tensor<32x16xf32>
  }
}
"""
"""Two products: the weights are sharded over `model`, so the second one is summed up over it."""

MANUAL = """\
module @jit_ring attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["ring"=4]>
  func.func public @main(%x: tensor<16xf32>) -> tensor<16xf32> {
    %y = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"ring"}]>] out_shardings=[<@mesh, [{"ring"}]>] manual_axes={"ring"}
        (%part: tensor<4xf32>) {
      %sum = stablehlo.add %part, %part : tensor<4xf32>
      sdy.return %sum : tensor<4xf32>
    } : (tensor<16xf32>) -> tensor<16xf32>
    return %y : tensor<16xf32>
  }
}
"""
"""A `shard_map`, whose shapes belong to its mesh."""
