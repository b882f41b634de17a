export { type ChainObserver, ChainRegistry, type ChainRegistryOptions } from './chain-registry.ts';
export { isRegistryError, RegistryError, type RegistryErrorCode } from './errors.ts';
export { type RegistryChange, registryInvocation } from './invocation.ts';
export type {
  NodeAnswer,
  NodePost,
  NodeRequest,
  ReaderLimits,
  ReadingSteps,
} from './node-reader.ts';
export { checkRegistryNodes, RegistryNodes } from './nodes.ts';
