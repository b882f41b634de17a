import { ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import type { ByteOwner } from './byte-ledger.ts';

/** Counts uploads and downloads of attachments: of each owner, and in all. */
export class Transfers {
  readonly #limits: RelayContext['limits'];
  readonly #ofOwner = new Map<string, number>();
  #total = 0;

  constructor({ limits }: Pick<RelayContext, 'limits'>) {
    this.#limits = limits;
  }

  /**
   * Begins a transfer, which ends when the returned value is disposed.
   * @throws ProtocolError `rate_limited` if too many are under way
   */
  begin({ kind, id }: ByteOwner): Disposable {
    const key = `${kind} ${id}`;
    const own = this.#ofOwner.get(key) ?? 0;
    const { blobTransfers, blobTransfersPerOwner } = this.#limits;
    if (this.#total >= blobTransfers || own >= blobTransfersPerOwner) {
      const data = { retry_after: 1 };
      throw new ProtocolError('rate_limited', 'too many transfers of attachments', { data });
    }
    this.#ofOwner.set(key, own + 1);
    this.#total += 1;
    const ended = new DisposableStack();
    ended.defer(() => this.#end(key));
    return ended;
  }

  #end(key: string): void {
    this.#total -= 1;
    const left = (this.#ofOwner.get(key) ?? 1) - 1;
    if (left > 0) this.#ofOwner.set(key, left);
    else this.#ofOwner.delete(key);
  }
}
