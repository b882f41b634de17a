import { checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { applyEvent } from '../chain/apply-event.ts';
import { handsBack } from '../chain/handed-back.ts';
import { decideEvent, writeChainEvent } from '../chain/write-event.ts';
import { type WriteEvent, writeHandingBack } from '../chain/write-handing-back.ts';

/** `group.close` (05 §13.5), also with what a restored host lost before (05 §5.6). */
export const groupClose: Handler<'group.close'> = async (context, call) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.close', body);
  const content = { kind: 'group.close', body } as const;
  if (!handsBack(body)) return await writeChainEvent(context, call.session, content);
  const groupCall = { session: call.session, groupId: body.group_id };
  const write: WriteEvent = async (tx, calling, event) =>
    await applyEvent(context, tx, await decideEvent(tx, calling, event));
  return await writeHandingBack(context, groupCall, { content, write });
};
