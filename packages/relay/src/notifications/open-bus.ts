import type { Network } from '@posthouse/protocol';
import type { RelayConfig } from '../config/index.ts';
import type { Bus, RelayContext } from '../context.ts';
import {
  busLost,
  busRestored,
  invalidNoticesReceived,
  noticeFailed,
  noticesDropped,
} from '../observability/events.ts';
import { MemoryBus } from './memory-bus.ts';

/** Opens the bus that the configuration names: NATS between processes, or memory for one process. */
export async function openBus(
  { bus: { nats }, network: context }: RelayConfig,
  {
    network,
    relayId,
    observed,
    parts,
  }: {
    readonly network: Network;
    readonly relayId: string;
    readonly observed: Pick<RelayContext, 'log' | 'metrics'>;
    readonly parts: AsyncDisposableStack;
  },
): Promise<Bus> {
  const failed = (error: unknown) => noticeFailed(observed, error);
  if (nats === '') return new MemoryBus(failed);
  // Loaded here: a relay of one process never needs it.
  const { NatsBus } = await import('./nats-bus.ts');
  return parts.use(
    await NatsBus.start({
      url: nats,
      subject: `posthouse.${context}.${network.word}.${relayId}.notices`,
      observer: {
        failed,
        lost: (error) => busLost(observed, error),
        restored: () => busRestored(observed),
        dropped: (count) => noticesDropped(observed, count),
        invalid: (count) => invalidNoticesReceived(observed, count),
      },
    }),
  );
}
