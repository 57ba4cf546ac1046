//! Dealing things out in contiguous blocks, as pgbench deals clients to threads: the first blocks have one more where it
//! does not come out even.

use std::ops::Range;

/// What block `index` of `blocks` holds of `count` things.
pub fn block(count: usize, blocks: usize, index: usize) -> Range<usize> {
    let (each, more) = (count / blocks, count % blocks);
    let begin = index * each + index.min(more);
    begin..begin + each + usize::from(index < more)
}

/// In which of `blocks` thing number `thing` of `count` is.
pub fn block_of(count: usize, blocks: usize, thing: usize) -> usize {
    let (each, more) = (count / blocks, count % blocks);
    let longer = more * (each + 1);
    if thing < longer {
        thing / (each + 1)
    } else {
        more + (thing - longer) / each
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_everything_once_in_order_and_know_what_they_hold() {
        for (count, blocks) in [(1, 1), (10, 3), (9, 3), (7, 7), (1000, 16), (5, 4)] {
            let dealt: Vec<_> = (0..blocks)
                .flat_map(|index| block(count, blocks, index).map(move |thing| (index, thing)))
                .collect();
            let things: Vec<_> = dealt.iter().map(|(_, thing)| *thing).collect();
            assert_eq!((0..count).collect::<Vec<_>>(), things);
            for (index, thing) in dealt {
                assert_eq!(index, block_of(count, blocks, thing));
            }
        }
        assert_eq!(0..4, block(10, 3, 0));
        assert_eq!(7..10, block(10, 3, 2));
    }
}
