import { type MethodName, ProtocolError } from '@posthouse/protocol';
import { isJsonObject, type JsonValue } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';

/**
 * Refuses a call about a channel that the operator closed here, as one about a channel that is not
 * hosted here. A subscription of several channels is checked by its handler.
 *
 * @throws ProtocolError `not_found`
 */
export function checkChannelHosted(
  { blocks }: Pick<RelayContext, 'blocks'>,
  method: MethodName,
  params: JsonValue,
): void {
  if (!method.startsWith('channel.') || !isJsonObject(params)) return;
  const { channel_id: id } = params;
  if (typeof id !== 'string' || !blocks.hasChannel(id)) return;
  throw new ProtocolError('not_found', 'this relay hosts no such channel');
}
