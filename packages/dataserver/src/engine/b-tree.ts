import sortedBtree from 'sorted-btree';

/**
 * A B+ tree with O(1) copy-on-write clones. The package is CommonJS; loaders differ in whether they unwrap its default.
 */
export const BTree = (sortedBtree.default ?? sortedBtree) as typeof sortedBtree.default;
export type BTree<K, V> = InstanceType<typeof sortedBtree.default<K, V>>;
