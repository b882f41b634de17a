import {
  decodeKadMessageInSteps,
  type KadBounds,
  type KadMessage,
} from '@posthouse/protocol/federation';
import type { CallTurns } from '../../dispatch/call-turns.ts';
import type { LongWork } from '../../dispatch/long-work.ts';

/** Decodes messages of the DHT in turns of the relays that send them, those of many fields in steps. */
export class KadDecoder {
  readonly #turns: Pick<CallTurns, 'take'>;
  readonly #longWork: Pick<LongWork, 'run'>;

  constructor(parts: {
    readonly turns: Pick<CallTurns, 'take'>;
    readonly longWork: Pick<LongWork, 'run'>;
  }) {
    this.#turns = parts.turns;
    this.#longWork = parts.longWork;
  }

  /** @throws ProtocolError as `decodeKadMessage` */
  async decode(relayId: string, frame: Uint8Array, bounds: KadBounds): Promise<KadMessage> {
    const owner = `relay ${relayId}`;
    await this.#turns.take(owner);
    const steps = decodeKadMessageInSteps(frame, bounds);
    const { done, value } = steps.next();
    return done === true ? value : await this.#longWork.run(owner, steps);
  }
}
