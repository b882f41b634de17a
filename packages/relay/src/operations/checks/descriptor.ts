import { checkDescriptor, classifyEndpoint } from '@posthouse/protocol';
import { type Check, ok } from './check.ts';

/** Whether the configuration makes a valid descriptor (07 §A8). */
export const descriptor: Check = {
  name: 'descriptor',
  scope: 'local',
  needs: ['configuration', 'keys'],
  cure: 'correct public.https, public.wss and public.peer',
  async find(relay) {
    const own = await relay.descriptor;
    checkDescriptor(relay.network, own);
    const others = own.endpoints.filter((item) => classifyEndpoint(item).kind !== 'other');
    return ok(`names ${others.join(', ')}`);
  },
};
