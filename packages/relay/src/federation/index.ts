export { AddressFilter } from './address-filter.ts';
export { readAuthority } from './admission.ts';
export {
  blockRelay,
  unblockRelay,
} from './block-store.ts';
export { type PeerConnection, readConnections } from './connection-store.ts';
export { DescriptorFetcher } from './descriptor-fetch.ts';
export { Federation } from './federation.ts';
export { readBody, trusting } from './https.ts';
export { registryFileJob } from './jobs.ts';
export { federationMigrations } from './migrations.ts';
export { type KnownRelay, readKnownRelays, retryRelay } from './peer-list.ts';
export {
  askRunningRelay,
  type RunningRelayAnswer,
} from './reachability/ask-running-relay.ts';
export type { DialOutcome } from './reachability/dial-back-answer.ts';
export type { ReachabilityReport, RelayReport } from './reachability/reachability-check.ts';
export { enterRelay, FileRegistry } from './registry/file.ts';
export { KeptRegistry, registryStatusOf } from './registry/kept-registry.ts';
export { NodeHttp } from './registry/node-http.ts';
export { openChain, openRegistry } from './registry/open.ts';
export {
  type OwnRecordFinding,
  ownRecordFinding,
  registryPath,
  useRegistry,
} from './registry/own-record.ts';
export { federationRestored } from './restored.ts';
export { parseDescriptor, verifyAgainstRecord } from './verify-descriptor.ts';
