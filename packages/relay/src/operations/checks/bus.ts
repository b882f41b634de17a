import { askNats } from '../../notifications/ask-nats.ts';
import { type Check, ok, skipped } from './check.ts';

/** Whether the NATS server answers, by which several processes hear of each other's changes. */
export const bus: Check = {
  name: 'bus',
  scope: 'local',
  needs: ['configuration'],
  cure: 'start the NATS server, or correct `bus.nats` (address, user and password)',
  async find({ config }, signal) {
    const { nats } = config.bus;
    if (nats === '') return skipped('bus.nats is empty: the relay is one process');
    const { host } = URL.canParse(nats) ? new URL(nats) : { host: 'the server' };
    const { version, roundTrip } = await askNats(nats, signal);
    return ok(`NATS ${version} at ${host} answers in ${roundTrip} ms`);
  },
};
