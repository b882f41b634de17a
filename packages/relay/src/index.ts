export { ConfigError, loadConfig, type PartialConfig, RelayConfig } from './config/index.ts';
export type { Clock } from './context.ts';
export { Relay, type RelayOptions } from './relay.ts';
export type { StorageFaults } from './storage/types.ts';
