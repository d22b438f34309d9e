"""Kernels in TileLang: products whose copies the compiler puts into a pipeline, sums over rows, a stream of tiles."""

import tilelang.language as T


def product(m, n, k, tile, stages):
    bm, bn, bk = tile

    @T.prim_func
    def main(a: T.Tensor((m, k), "float16"), b: T.Tensor((k, n), "float16"), c: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=128) as (bx, by):
            at_a = T.alloc_shared((bm, bk), "float16")
            at_b = T.alloc_shared((bk, bn), "float16")
            total = T.alloc_fragment((bm, bn), "float32")
            T.clear(total)
            for step in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                T.copy(a[by * bm, step * bk], at_a)
                T.copy(b[step * bk, bx * bn], at_b)
                T.gemm(at_a, at_b, total)
            T.copy(total, c[by * bm, bx * bn])

    return main


def row_sums(rows, columns, block):
    @T.prim_func
    def main(source: T.Tensor((rows, columns), "float32"), sums: T.Tensor((rows,), "float32")):
        with T.Kernel(rows, threads=128) as row:
            part = T.alloc_fragment((1, block), "float32")
            total = T.alloc_fragment((1,), "float32")
            one = T.alloc_fragment((1,), "float32")
            T.clear(total)
            for step in T.serial(columns // block):
                T.copy(source[row, step * block], part)
                T.reduce_sum(part, one, dim=1)
                total[0] += one[0]
            if T.get_thread_binding() == 0:
                sums[row] = total[0]

    return main


def stream(rows, columns, height, stages):
    @T.prim_func
    def main(source: T.Tensor((rows, columns), "float16"), target: T.Tensor((rows, columns), "float16")):
        with T.Kernel(4, threads=128) as block:
            inbox = T.alloc_shared((height, columns), "float16")
            outbox = T.alloc_shared((height, columns), "float16")
            for step in T.Pipelined(rows // height // 4, num_stages=stages):
                at = (block * (rows // height // 4) + step) * height
                T.copy(source[at, 0], inbox)
                for i, j in T.Parallel(height, columns):
                    outbox[i, j] = inbox[i, j] * 2.0
                T.copy(outbox, target[at, 0])

    return main


def blocks(length, width, height, chosen, block):
    """Of the blocks of rows that an index tensor names the sum, weighted by their products with the rows at hand."""

    @T.prim_func
    def main(
        q: T.Tensor((length, width), "float16"),
        k: T.Tensor((length, width), "float16"),
        index: T.Tensor((length // height, chosen), "int32"),
        out: T.Tensor((length, width), "float16"),
    ):
        with T.Kernel(length // height, threads=128) as (bx,):
            at_q = T.alloc_shared((height, width), "float16")
            at_k = T.alloc_shared((block, width), "float16")
            product = T.alloc_fragment((height, block), "float")
            weights = T.alloc_shared((height, block), "float16")
            total = T.alloc_fragment((height, width), "float")
            T.copy(q[bx * height, 0], at_q)
            T.clear(total)
            for n in T.Pipelined(chosen, num_stages=2):
                T.copy(k[index[bx, n] * block, 0], at_k)
                T.clear(product)
                T.gemm(at_q, at_k, product, transpose_B=True)
                T.copy(product, weights)
                T.gemm(weights, at_k, total)
            T.copy(total, out[bx * height, 0])

    return main


def persistent(m, n, k, tile, stages, blocks):
    """Each block goes through several tiles of a product; the warps beside the one that loads only wait."""
    bm, bn, bk = tile

    @T.prim_func
    def main(a: T.Tensor((m, k), "float16"), b: T.Tensor((k, n), "float16"), c: T.Tensor((m, n), "float16")):
        with T.Kernel(blocks, threads=128) as block:
            at_a = T.alloc_shared((bm, bk), "float16")
            at_b = T.alloc_shared((bk, bn), "float16")
            at_c = T.alloc_shared((bm, bn), "float16")
            total = T.alloc_fragment((bm, bn), "float32")
            for bx, by in T.Persistent([T.ceildiv(m, bm), T.ceildiv(n, bn)], blocks, block):
                T.clear(total)
                for step in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                    T.copy(a[bx * bm, step * bk], at_a)
                    T.copy(b[step * bk, by * bn], at_b)
                    T.gemm(at_a, at_b, total)
                T.copy(total, at_c)
                T.copy(at_c, c[bx * bm, by * bn])

    return main


def attention(length, width, block):
    """One head: the keys and the values go through two rings, the weights stay in registers."""

    @T.prim_func
    def main(
        q: T.Tensor((length, width), "float16"),
        k: T.Tensor((length, width), "float16"),
        v: T.Tensor((length, width), "float16"),
        out: T.Tensor((length, width), "float16"),
    ):
        with T.Kernel(length // block, threads=128) as bx:
            at_q = T.alloc_shared((block, width), "float16")
            at_k = T.alloc_shared((block, width), "float16")
            at_v = T.alloc_shared((block, width), "float16")
            at_out = T.alloc_shared((block, width), "float16")
            scores = T.alloc_fragment((block, block), "float32")
            weights = T.alloc_fragment((block, block), "float16")
            total = T.alloc_fragment((block, width), "float32")
            most = T.alloc_fragment((block,), "float32")
            before = T.alloc_fragment((block,), "float32")
            shrunk = T.alloc_fragment((block,), "float32")
            part = T.alloc_fragment((block,), "float32")
            weight = T.alloc_fragment((block,), "float32")
            T.copy(q[bx * block, 0], at_q)
            T.clear(total)
            T.clear(weight)
            T.fill(most, -T.infinity("float32"))
            for step in T.Pipelined(length // block, num_stages=2):
                T.copy(k[step * block, 0], at_k)
                T.clear(scores)
                T.gemm(at_q, at_k, scores, transpose_B=True)
                T.copy(most, before)
                T.reduce_max(scores, most, dim=1, clear=False)
                for i in T.Parallel(block):
                    shrunk[i] = T.exp2(before[i] - most[i])
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.exp2(scores[i, j] - most[i])
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(block):
                    weight[i] = weight[i] * shrunk[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block, width):
                    total[i, j] *= shrunk[i]
                T.copy(v[step * block, 0], at_v)
                T.gemm(weights, at_v, total)
            for i, j in T.Parallel(block, width):
                total[i, j] /= weight[i]
            T.copy(total, at_out)
            T.copy(at_out, out[bx * block, 0])

    return main
