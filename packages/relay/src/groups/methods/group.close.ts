import { checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { signedEventOf, writeChainEvent } from '../chain/write-event.ts';

/** `group.close` (05 §13.5). */
export const groupClose: Handler<'group.close'> = async (context, call) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.close', body);
  const event = signedEventOf(context.network, { kind: 'group.close', body });
  return await writeChainEvent(context, call.session, event);
};
