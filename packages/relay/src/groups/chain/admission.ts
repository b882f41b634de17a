import {
  type Admitted,
  admitCaller,
  type CallingDevice,
  type SignedByCaller,
} from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Reader } from '../../storage/types.ts';
import { type GroupCall, readInGroup } from './group-transactions.ts';

/**
 * Refuses a caller without the right to write before the group is held, after its signature
 * (05 §12.4). The write checks the right again (05 §12.6).
 *
 * @param call.signed what the calling device must have signed
 * @param requireRight throws if the caller lacks the right
 * @throws ProtocolError `unauthorized`, `invalid_signature`, and what `requireRight` throws
 */
export async function admitToWrite<A>(
  context: RelayContext,
  call: GroupCall & { readonly signed?: SignedByCaller },
  requireRight: (tx: Reader, calling: CallingDevice) => Promise<A>,
): Promise<Admitted<A>> {
  const { signed } = call;
  return await admitCaller(context, (check) => readInGroup(context, call, check), {
    signed,
    requireRight,
  });
}
