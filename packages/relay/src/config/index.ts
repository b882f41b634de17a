export type { Purpose } from './check.ts';
export { explainConfig } from './explain.ts';
export {
  ConfigError,
  type LoadedConfig,
  loadConfig,
  type PartialConfig,
} from './load.ts';
export { RelayConfig } from './schema.ts';
export { isServerUrl, serverUrl, shown } from './shown.ts';
