import type { Capability } from '@posthouse/protocol';
import type { RelayConfig } from '../config/index.ts';
import type { HandlersOf } from '../dispatch/handler.ts';
import type { Module } from '../dispatch/module.ts';
import type { DescriptorSource } from './descriptor-source.ts';
import { relayDescriptor } from './methods/relay.descriptor.ts';
import { relayInfo } from './methods/relay.info.ts';

export { DescriptorSource } from './descriptor-source.ts';
export { type FrontPages, frontPages } from './front-pages.ts';

/** Makes the module that answers `relay.descriptor` and `relay.info`. */
export function aboutModule(options: {
  readonly name: string;
  readonly descriptor: DescriptorSource;
  readonly modules: readonly Capability[];
  readonly restoredAt?: number | undefined;
  readonly about?: Partial<RelayConfig['about']>;
}): Module {
  return {
    name: 'relay',
    handlers: {
      'relay.descriptor': relayDescriptor(options.descriptor),
      'relay.info': relayInfo(options),
    } satisfies HandlersOf<'relay'>,
    jobs: [],
  };
}
