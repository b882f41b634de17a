export {
  type BlockedRelay,
  blockRelay,
  listBlockedRelays,
  unblockRelay,
} from './block-store.ts';
export { federationMigrations } from './migrations.ts';
export * from './no-federation.ts';
export { type KnownRelay, readKnownRelays, retryRelay } from './peer-list.ts';
export { enterRelay, FileRegistry, readRegistry } from './registry/file.ts';
export { KeptRegistry, registryStatusOf } from './registry/kept-registry.ts';
