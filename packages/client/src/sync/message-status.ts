/** Events about the status of what this device wrote: one for each change, wherever it goes. */
import { recordEvents } from '../events/event-log.ts';
import type { MessageStatusEvent } from '../events.ts';
import type { StoreWriter } from '../store/index.ts';

/** Records a change of a status, in the transaction that stores it. */
export async function recordStatus(
  tx: StoreWriter,
  event: Omit<MessageStatusEvent, 'kind'>,
): Promise<void> {
  await recordEvents(tx, [{ kind: 'message-status', ...event }]);
}
