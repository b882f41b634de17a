import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { addressKey } from '@posthouse/peer';
import type { RelayContext } from '../context.ts';
import { inTurns } from '../event-loop.ts';
import { connectionRefused, type EndReason } from '../observability/events.ts';
import type { BlockedAddresses } from './blocked-addresses.ts';
import type { ClientAddresses } from './client-addresses.ts';
import { Counts } from './counts.ts';

export interface ConnectionTableParts {
  readonly context: Pick<RelayContext, 'limits' | 'log' | 'metrics'>;
  readonly clients: ClientAddresses;
  readonly blocked: BlockedAddresses;
}

interface Entry {
  readonly socket: Socket;
  /** Key of the client's address; `undefined` for the connection of a proxy, which has no limit. */
  readonly address: string | undefined;
  /** The client's address itself; that of the proxy until a client is named. */
  readonly client: string;
  readonly hasSession: boolean;
  /** Ends the connection at once. */
  readonly end: (reason: EndReason) => void;
}

interface OfAddress {
  /** Oldest first. */
  readonly strangers: Set<string>;
  readonly withSession: Set<string>;
}

/**
 * All open connections, whatever their use. If there are too many, a new one replaces the oldest
 * connection without a session, of the address that has most of them: so no address keeps others out,
 * and who has a session finds room (02 §18).
 */
export class ConnectionTable {
  readonly #parts: ConnectionTableParts;
  /** By `connectionKey`. */
  readonly #entries = new Map<string, Entry>();
  readonly #byAddress = new Map<string, OfAddress>();
  #strangers = 0;
  /** Of each address: connections without a session, and all. */
  readonly #strangersOf = new Counts();
  readonly #allOf = new Counts();

  constructor(parts: ConnectionTableParts) {
    this.#parts = parts;
  }

  /**
   * Adds a connection that was accepted, or ends it if there is no room or its address is blocked;
   * returns whether it was added.
   */
  add(socket: Socket): boolean {
    const key = connectionKey(socket);
    const { remoteAddress = '' } = socket;
    const address = this.#parts.clients.isProxy(remoteAddress)
      ? undefined
      : addressKey(remoteAddress);
    const end = () => void socket.destroy();
    if (this.#parts.blocked.has(remoteAddress)) {
      connectionRefused(this.#parts.context, 'the address is blocked');
      end();
      return false;
    }
    if (!this.#makeRoom(address)) {
      end();
      return false;
    }
    this.#set(key, { socket, address, client: remoteAddress, hasSession: false, end });
    socket.once('close', () => {
      // The peer may have used the port again since.
      if (this.#entries.get(key)?.socket === socket) this.#remove(key);
    });
    return true;
  }

  /**
   * Counts the connection for a client that a proxy names, and ends it from now on by `end`.
   * @param to.client the client's address, not as limits count it
   * @returns whether there is room for the client
   */
  assign(socket: Duplex, { client, end }: Pick<Entry, 'client' | 'end'>): boolean {
    const key = connectionKey(socket as Socket);
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    const address = addressKey(client);
    if (entry.address === undefined && !this.#makeRoom(address)) return false;
    this.#set(key, { ...entry, address, client, end });
    return true;
  }

  /** Sets whether a connection has a session. A proxy's connection serves many clients. */
  setSession(socket: Duplex, hasSession: boolean): void {
    const key = connectionKey(socket as Socket);
    const entry = this.#entries.get(key);
    if (entry?.address === undefined || entry.hasSession === hasSession) return;
    this.#set(key, { ...entry, hasSession });
  }

  /** Ends the connections of addresses that are blocked now, in slices of the event loop. */
  async endBlocked(): Promise<void> {
    await inTurns([...this.#entries.keys()], (key) => {
      // Another client may be named since.
      const entry = this.#entries.get(key);
      if (entry?.address === undefined) return;
      if (this.#parts.blocked.has(entry.client)) entry.end('the address is blocked');
    });
  }

  /** Ends all connections, in slices of the event loop: the relay stops. */
  async terminate(): Promise<void> {
    await inTurns([...this.#entries.values()], ({ end }) => end('relay stops'));
  }

  /** Ends connections until one more fits; returns whether it does. */
  #makeRoom(address: string | undefined): boolean {
    const { context } = this.#parts;
    const { limits } = context;
    const own = address === undefined ? undefined : this.#byAddress.get(address);
    if (own !== undefined && sizeOf(own) >= limits.connectionsPerAddress) {
      if (!this.#replace(first(own.strangers))) {
        connectionRefused(context, 'too many connections from one address');
        return false;
      }
    }
    const isFull = this.#entries.size >= limits.connections;
    if (!isFull && this.#strangers < limits.strangerConnections) return true;
    const victim =
      this.#oldestStranger() ?? this.#oldestOfMost(own === undefined ? 0 : sizeOf(own));
    if (this.#replace(victim)) return true;
    connectionRefused(context, 'too many connections');
    return false;
  }

  /** Ends a connection to make room for a new one. */
  #replace(key: string | undefined): boolean {
    const entry = key === undefined ? undefined : this.#entries.get(key);
    if (key === undefined || entry === undefined) return false;
    connectionRefused(this.#parts.context, 'replaced by a newer connection');
    this.#remove(key);
    entry.end('too many connections');
    return true;
  }

  /** Returns the oldest connection without a session, of the address that has most of them. */
  #oldestStranger(): string | undefined {
    const most = this.#byAddress.get(this.#strangersOf.most() ?? '');
    return most && first(most.strangers);
  }

  /** Returns the oldest connection of the address with most, if that has more than the newcomer's. */
  #oldestOfMost(own: number): string | undefined {
    const address = this.#allOf.most() ?? '';
    if (this.#allOf.get(address) <= own + 1) return undefined;
    const most = this.#byAddress.get(address);
    return most && first(most.withSession);
  }

  #set(key: string, entry: Entry): void {
    this.#remove(key);
    this.#entries.set(key, entry);
    const { address, hasSession } = entry;
    if (address === undefined) return;
    const of = this.#byAddress.get(address) ?? { strangers: new Set(), withSession: new Set() };
    this.#byAddress.set(address, of);
    (hasSession ? of.withSession : of.strangers).add(key);
    if (!hasSession) this.#countStranger(address, 1);
    this.#allOf.add(address, 1);
  }

  #remove(key: string): void {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    if (entry?.address === undefined) return;
    const { address } = entry;
    const of = this.#byAddress.get(address);
    if (of?.strangers.delete(key)) this.#countStranger(address, -1);
    of?.withSession.delete(key);
    if (of !== undefined && sizeOf(of) === 0) this.#byAddress.delete(address);
    this.#allOf.add(address, -1);
  }

  #countStranger(address: string, change: 1 | -1): void {
    this.#strangers += change;
    this.#strangersOf.add(address, change);
  }
}

/** Returns what all sockets of one connection have in common: a TLS socket, and the one it uses. */
export function connectionKey({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function sizeOf({ strangers, withSession }: OfAddress): number {
  return strangers.size + withSession.size;
}

function first(keys: ReadonlySet<string>): string | undefined {
  const [key] = keys;
  return key;
}
