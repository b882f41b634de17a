/** After admission: both sides agree on Yamux, over the encrypted channel (07 §B2). */
import type { Socket } from 'node:net';
import { PeerError } from './errors.ts';
import type { PeerLimits } from './limits.ts';
import { Proposal, Selection } from './multistream.ts';
import type { NoiseKeys } from './noise/handshake.ts';
import { type RunSteps, SecureChannel } from './secure-channel.ts';

const yamuxProtocol = '/yamux/1.0.0';

/**
 * Agrees on Yamux. `open` is called in the same turn as the agreement, so that it receives all that
 * follows.
 *
 * @throws PeerError `not_supported`, `protocol` or `closed`
 */
export function agreeOnYamux<T>(
  socket: Socket,
  options: { keys: NoiseKeys; isDialer: boolean; limits: PeerLimits; runSteps?: RunSteps },
  open: (channel: SecureChannel, rest: Uint8Array) => T,
): Promise<T> {
  const { keys, isDialer, limits, runSteps } = options;
  return new Promise((resolve, reject) => {
    const proposal = isDialer ? new Proposal(yamuxProtocol, limits) : undefined;
    const selection = new Selection((protocol) => protocol === yamuxProtocol, limits);
    const receive = (bytes: Buffer): Uint8Array | undefined => {
      if (proposal !== undefined) return proposal.receive(bytes);
      const { reply, agreed } = selection.receive(bytes);
      if (reply.length > 0) channel.write(reply);
      return agreed?.rest;
    };
    const events = {
      data(bytes: Buffer) {
        try {
          const rest = receive(bytes);
          if (rest !== undefined) resolve(open(channel, rest));
        } catch (error) {
          reject(error);
          channel.destroy(
            error instanceof PeerError ? error : new PeerError('closed', 'no agreement on Yamux'),
          );
        }
        return bytes.length;
      },
      drain() {},
      closed: reject,
    };
    const channel = new SecureChannel(socket, keys, events, runSteps);
    if (proposal !== undefined) channel.write(proposal.request);
  });
}
