/**
 * A Neo N3 node at the outermost edge: a real HTTP server that answers JSON-RPC as the known kinds of
 * nodes do, over a {@link RegistryContract}. Tests make it slow, broken or dishonest.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import {
  type Argument,
  type ContractRecord,
  Fault,
  RegistryContract,
  type Signer,
} from './contract.ts';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** How the node writes iterators. */
export type Iterators = 'sessions' | 'inline' | 'truncated' | 'no session';

/** What the node does with a request instead of an answer. */
export type Fate = 'answer' | 'hang' | 'cut' | 'close' | 'drip' | 'huge' | 'redirect' | 'status';

interface Request {
  readonly id: number;
  readonly method: string;
  readonly params: readonly Json[];
}

export class FakeNode implements AsyncDisposable {
  readonly contract: RegistryContract;
  magic: number;
  records: 'Struct' | 'Array' = 'Struct';
  bytes: 'ByteString' | 'Buffer' = 'ByteString';
  iterators: Iterators = 'sessions';
  /** Most items of one `traverseiterator`; more are refused. */
  cap = 100;
  /** Most items that it really returns. */
  returns = 100;
  /** Whether a connection serves more than one request. */
  keepsConnections = true;
  /** Whether `getversion` tells the cap. */
  tellsCap = false;
  fate: (method: string) => Fate = () => 'answer';
  /** Changes results. */
  tamper: (method: string, result: Json, params: readonly Json[]) => Json = (_, result) => result;
  /** Methods that were asked, in order; of `invokefunction` the contract's method. */
  readonly asked: string[] = [];
  /** Sessions that are open. */
  readonly sessions = new Map<string, { readonly iterator: string; items: Json[] }>();
  /** Bytes of each answer to the fate `huge`. */
  hugeBytes = 64 * 1024 * 1024;
  /** Bytes sent before the other side closed, of huge answers. */
  sentBytes = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(contract: RegistryContract, magic: number) {
    this.contract = contract;
    this.magic = magic;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket)).on('error', () => {});
    });
  }

  /** Starts a node of a network, over a contract of its own or one that several nodes have. */
  static async start(context: string, contract?: RegistryContract): Promise<FakeNode> {
    const [, magic, hash = ''] = context.split(':');
    const node = new FakeNode(contract ?? new RegistryContract(hash), Number(magic));
    node.#server.listen(0, '127.0.0.1');
    await once(node.#server, 'listening');
    return node;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Closes every connection, as a node that restarts. */
  disconnect(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.disconnect();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const cors = { 'access-control-allow-origin': '*', 'access-control-allow-headers': '*' };
    if (request.method === 'OPTIONS') {
      response.writeHead(204, cors).end();
      return;
    }
    const call = JSON.parse(await text(request)) as Request;
    const method = call.method === 'invokefunction' ? String(call.params[1]) : call.method;
    this.asked.push(method);
    const headers = {
      ...cors,
      'content-type': 'application/json',
      ...(this.keepsConnections ? {} : { connection: 'close' }),
    };
    switch (this.fate(method)) {
      case 'hang':
        return;
      case 'close':
        response.destroy();
        return;
      case 'redirect':
        response.writeHead(307, { location: this.url }).end();
        return;
      case 'status':
        response.writeHead(503).end('busy');
        return;
      case 'drip':
        response.writeHead(200, headers).write('{');
        return;
      case 'huge':
        this.#sendHuge(response.writeHead(200, headers));
        return;
      case 'cut': {
        const whole = this.#answer(call, method);
        response.writeHead(200, { ...headers, 'content-length': whole.length });
        response.write(whole.slice(0, whole.length / 2), () => response.destroy());
        return;
      }
      case 'answer':
        response.writeHead(200, headers).end(this.#answer(call, method));
    }
  }

  #sendHuge(response: ServerResponse): void {
    const piece = `"${'a'.repeat(65_533)}",`;
    response.write('{"jsonrpc":"2.0","id":1,"result":[');
    const more = () => {
      while (this.sentBytes < this.hugeBytes) {
        this.sentBytes += piece.length;
        if (!response.write(piece)) {
          response.once('drain', more);
          return;
        }
      }
      response.end('""]}');
    };
    more();
  }

  #answer({ id, method, params }: Request, asked: string): string {
    try {
      const result = this.tamper(asked, this.#result(method, params), params);
      return `${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`;
    } catch (error) {
      const { message } = error as Error;
      return JSON.stringify({ jsonrpc: '2.0', id, error: { code: -602, message } });
    }
  }

  #result(method: string, params: readonly Json[]): Json {
    switch (method) {
      case 'getversion': {
        const rpc = this.tellsCap ? { maxiteratorresultitems: this.cap } : {};
        return {
          tcpport: 10_333,
          nonce: 1_930_156_121,
          useragent: '/Neo:3.7.4/',
          rpc,
          protocol: { addressversion: 53, network: this.magic, msperblock: 15_000 },
        };
      }
      case 'invokefunction':
        return this.#invoke(params);
      case 'traverseiterator':
        return this.#traverse(params);
      case 'terminatesession':
        return this.sessions.delete(String(params[0]));
      default:
        throw new Error('Method not found');
    }
  }

  #invoke([hash, method, args, signers]: readonly Json[]): Json {
    if (hash !== this.contract.hash) throw new Error('Unknown contract');
    const common = { script: 'wh8=', gasconsumed: '2007570', notifications: [] };
    try {
      const value = this.contract.simulate({
        method: String(method),
        args: ((args ?? []) as unknown as ContractArgument[]).map(valueOfArgument),
        signers: (signers ?? []) as unknown as readonly Signer[],
      });
      const { item, session } = this.#item(value);
      return { ...common, state: 'HALT', exception: null, stack: [item], ...session };
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return { ...common, state: 'FAULT', exception: error.message, stack: [] };
    }
  }

  #item(value: unknown): { readonly item: Json; readonly session?: { session: string } } {
    if (value === null) return { item: { type: 'Any' } };
    if (typeof value === 'boolean') return { item: { type: 'Boolean', value } };
    if (typeof value === 'number') return { item: { type: 'Integer', value: String(value) } };
    if (!Array.isArray(value)) return { item: this.record(value as ContractRecord) };
    return this.#iterator(value.map((one) => this.record(one as ContractRecord)));
  }

  #iterator(items: Json[]): { readonly item: Json; readonly session?: { session: string } } {
    const [session, iterator] = [randomUUID(), randomUUID()];
    const type = { type: 'InteropInterface', interface: 'IIterator' };
    switch (this.iterators) {
      case 'sessions':
        this.sessions.set(session, { iterator, items });
        return { item: { ...type, id: iterator }, session: { session } };
      case 'inline':
        return { item: { type: 'InteropInterface', iterator: items, truncated: false } };
      case 'truncated':
        return { item: { type: 'InteropInterface', iterator: items, truncated: true } };
      case 'no session':
        return { item: { ...type, id: iterator } };
    }
  }

  #traverse([session, iterator, count]: readonly Json[]): Json {
    const open = this.sessions.get(String(session));
    if (open === undefined || open.iterator !== iterator) throw new Error('Unknown session');
    if (Number(count) > this.cap) throw new Error('Invalid iterator items count');
    return open.items.splice(0, Math.min(Number(count), this.returns));
  }

  /** Writes a record as a stack item. */
  record({ relayId, endpoint, status, updatedAt }: ContractRecord): Json {
    const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');
    const id = Buffer.from(relayId.slice(2), 'hex').reverse();
    return {
      type: this.records,
      value: [
        { type: 'ByteString', value: base64(id) },
        { type: this.bytes, value: base64(endpoint) },
        { type: this.bytes, value: base64(Buffer.from(status)) },
        { type: 'Integer', value: String(updatedAt) },
      ],
    };
  }
}

interface ContractArgument {
  readonly type: string;
  readonly value: Argument;
}

/** Nodes accept script hashes with and without `0x`. */
function valueOfArgument({ type, value }: ContractArgument): Argument {
  return type === 'Hash160' ? `0x${String(value).replace(/^0x/, '')}` : value;
}
