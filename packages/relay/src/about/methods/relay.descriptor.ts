import { type Handler, JsonText } from '../../dispatch/handler.ts';
import type { DescriptorSource } from '../descriptor-source.ts';

/** The relay's signed descriptor (02 §11.1). */
export function relayDescriptor(source: DescriptorSource): Handler<'relay.descriptor'> {
  return async () => ({ result: new JsonText(await source.current()) });
}
