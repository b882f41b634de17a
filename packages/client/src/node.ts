/** What only Node has: a store in a file, and connections that trust a private authority. */
export { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
export { NodeTransport, type NodeTransportOptions } from './connect/node-transport.ts';
export { SqliteStore } from './store/sqlite.ts';
