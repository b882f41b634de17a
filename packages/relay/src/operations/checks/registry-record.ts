import { ownRecordFinding } from '../../federation/index.ts';
import { type Check, failed, ok } from './check.ts';

/** Whether the registry lists the relay as active, with its first HTTPS address (07 §A3). */
export const registryRecord: Check = {
  name: 'registry',
  scope: 'network',
  needs: ['configuration', 'descriptor'],
  cure: 'correct the setting `registry`; `posthouse registry check` says more about nodes of the chain',
  async find(relay, signal) {
    const { relayId } = await relay.identity;
    const endpoint = await relay.endpoint;
    const kind = typeof relay.config.registry === 'string' ? 'file' : 'chain';
    const entry = await (await relay.registry).getRelay(relayId, signal);
    const { seen, cure } = ownRecordFinding(entry, { endpoint, kind });
    return cure === undefined ? ok(seen) : failed(seen, cure);
  },
};
