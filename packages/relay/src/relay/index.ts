import type { Capability } from '@posthouse/protocol';
import { defineHandlers, type Offering } from '../subject.ts';
import type { DescriptorSource } from './descriptor.ts';
import { relayDescriptor } from './methods/relay.descriptor.ts';
import { relayInfo } from './methods/relay.info.ts';

export { DescriptorSource } from './descriptor.ts';

/** The relay about itself. */
export function relaySubject(options: {
  readonly name: string;
  readonly descriptor: DescriptorSource;
  readonly modules: readonly Capability[];
}): Offering {
  return {
    name: 'relay',
    handlers: defineHandlers({
      'relay.descriptor': relayDescriptor(options.descriptor),
      'relay.info': relayInfo(options),
    }),
    jobs: [],
  };
}
