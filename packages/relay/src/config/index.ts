export type { Purpose } from './check.ts';
export { explainConfig } from './explain.ts';
export {
  ConfigError,
  type LoadedConfig,
  loadConfig,
  type PartialConfig,
} from './load.ts';
export { isServerUrl, serverUrl, shown } from './redact.ts';
export { RelayConfig } from './schema.ts';
