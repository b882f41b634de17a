export { ConfigError, loadConfig, type PartialConfig, RelayConfig } from './config/index.ts';
export type { Clock } from './context.ts';
export type { RelayOptions } from './create-context.ts';
export { Relay } from './relay.ts';
export type { StorageFaults } from './storage/types.ts';
