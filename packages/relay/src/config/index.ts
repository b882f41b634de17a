export type { Purpose } from './check.ts';
export { commentedConfig } from './commented-file.ts';
export { explainConfig } from './explain.ts';
export { changedSettings, liveLimits, needsRestart } from './live.ts';
export {
  ConfigError,
  type LoadedConfig,
  loadConfig,
  type PartialConfig,
} from './load.ts';
export { isServerUrl, redact, serverUrl } from './redact.ts';
export { RelayConfig } from './schema.ts';
export { defaultOf } from './settings.ts';
export { systemFault } from './system-fault.ts';
