export {
  type BlockedRelay,
  blockRelay,
  listBlockedRelays,
  unblockRelay,
} from './block-store.ts';
export { type ConnectionList, type PeerConnection, readConnections } from './connection-store.ts';
export { Federation } from './federation.ts';
export { federationMigrations } from './migrations.ts';
export { type KnownRelay, readKnownRelays, retryRelay } from './peer-list.ts';
export { FileRegistry } from './registry/file.ts';
export { KeptRegistry, registryStatusOf } from './registry/kept-registry.ts';
export { openChain, openRegistry } from './registry/open.ts';
export {
  type OwnRecordFinding,
  ownRecordFinding,
  registryPath,
  useRegistry,
} from './registry/own-record.ts';
