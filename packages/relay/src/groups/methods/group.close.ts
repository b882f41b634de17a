import { checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { writeLink } from '../chain/write-event.ts';

/** `group.close` (05 §13.5). */
export const groupClose: Handler<'group.close'> = async (context, call) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.close', body);
  return await writeLink(context, call, { kind: 'group.close', body });
};
