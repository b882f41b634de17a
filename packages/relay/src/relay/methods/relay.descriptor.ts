import { type Handler, JsonText } from '../../call.ts';
import type { DescriptorSource } from '../descriptor.ts';

/** The relay's signed descriptor (02 §11.1). */
export function relayDescriptor(source: DescriptorSource): Handler {
  return async () => ({ result: new JsonText(await source.current()) });
}
