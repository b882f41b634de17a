import type { Socket } from 'node:net';
import type { RelayContext } from '../context.ts';
import { connectionRefused } from '../observability/events.ts';
import { connectionKey } from './connection-table.ts';

interface Unfinished {
  readonly socket: Socket;
  /** Key of the address; absent for a proxy, whose clients all have its address. */
  readonly address: string | undefined;
  readonly deadline: Disposable;
}

/**
 * The TLS handshakes that have begun and are not over, each some ten kilobytes: so many of an address
 * and of the process, and each for so long (02 §18). One too many ends the oldest.
 */
export class UnfinishedHandshakes {
  readonly #context: Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;
  readonly #entries = new Map<string, Unfinished>();
  /** The keys of each address, oldest first. */
  readonly #byAddress = new Map<string | undefined, Set<string>>();

  constructor(context: Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>) {
    this.#context = context;
  }

  /** Adds a handshake that begins; `address` is absent for a proxy. */
  add(socket: Socket, address: string | undefined): void {
    const { clock, limits } = this.#context;
    const own = this.#byAddress.get(address)?.size ?? 0;
    if (address !== undefined && own >= limits.addressHandshakesUnfinished) {
      this.#endOldest(this.#byAddress.get(address));
    } else if (this.#entries.size >= limits.handshakesUnfinished) this.#endOldest(this.#most());
    const key = connectionKey(socket);
    const deadline = clock.after(limits.handshakeTimeout, () => socket.destroy());
    this.#entries.set(key, { socket, address, deadline });
    const keys = this.#byAddress.get(address) ?? new Set();
    this.#byAddress.set(address, keys.add(key));
    socket.once('close', () => {
      // The peer may have used the port again since.
      if (this.#entries.get(key)?.socket === socket) this.#remove(key);
    });
  }

  /** Removes a handshake that is over; takes any socket of the connection. */
  delete(socket: Socket): void {
    this.#remove(connectionKey(socket));
  }

  #most(): ReadonlySet<string> | undefined {
    let most: ReadonlySet<string> | undefined;
    for (const keys of this.#byAddress.values()) if (keys.size > (most?.size ?? 0)) most = keys;
    return most;
  }

  #endOldest(keys: ReadonlySet<string> = new Set()): void {
    const [key = ''] = keys;
    const oldest = this.#entries.get(key);
    connectionRefused(this.#context, 'too many unfinished handshakes');
    this.#remove(key);
    oldest?.socket.destroy();
  }

  #remove(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.deadline[Symbol.dispose]();
    this.#entries.delete(key);
    const keys = this.#byAddress.get(entry.address);
    keys?.delete(key);
    if (keys?.size === 0) this.#byAddress.delete(entry.address);
  }
}
