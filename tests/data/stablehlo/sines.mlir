module @jit_sines {
  func.func public @main(%x: tensor<6xf32>, %n: tensor<2xi32>) -> (tensor<6xf32>, tensor<2xi32>) {
    %a = stablehlo.sine %x : tensor<6xf32>
    %b = stablehlo.sine %x : tensor<6xf32>
    %y = stablehlo.multiply %a, %b : tensor<6xf32>
    %m = stablehlo.add %n, %n : tensor<2xi32>
    return %y, %m : tensor<6xf32>, tensor<2xi32>
  }
}
