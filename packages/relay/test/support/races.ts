/** Calls that are made at the same moment, whichever process of a relay each of them reaches. */
import { errorCodeOfRpc } from '@posthouse/protocol';
import { expect } from 'vitest';
import type { PartialConfig } from '../../src/config/index.ts';
import { DoorGround } from './door.ts';
import { rowsOf } from './engine.ts';
import { TestNats } from './nats.ts';
import type { Person } from './people.ts';
import { FrontDoor } from './relay.ts';
import type { RpcAnswer, WebSocketClient } from './websocket.ts';

/** Processes of one relay, and what ends with them. */
export interface Place extends AsyncDisposable {
  readonly doors: readonly FrontDoor[];
}

/** A call to be made together with others. */
export interface RacingCall {
  readonly by: Person;
  readonly device?: string;
  readonly method: string;
  readonly params: object;
}

export type Rows = readonly Readonly<Record<string, string | number | null>>[];

type Hosting = NonNullable<PartialConfig['host']>;

/** A relay of one process. */
export async function oneProcess(host: Hosting): Promise<Place> {
  const door = await FrontDoor.start({ host });
  return { doors: [door], [Symbol.asyncDispose]: () => door[Symbol.asyncDispose]() };
}

/** Two processes on one database, and what tells one of the other's commits. */
export async function twoProcesses(host: Hosting): Promise<Place> {
  const parts = new AsyncDisposableStack();
  const nats = parts.use(await TestNats.start());
  const first = parts.use(
    await FrontDoor.start({
      public: { https: ['https://127.0.0.1:8443/svc/v1'] },
      host,
      bus: { nats: nats.url },
    }),
  );
  const second = parts.use(await first.beside());
  return { doors: [first, second], [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/**
 * @example
 * const course = new RaceCourse(place);
 * const ann = await course.ground.person('ann', ['phone', 'laptop']);
 * const codes = await course.race({ by: ann, method, params }, { by: ann, method, params });
 */
export class RaceCourse {
  /** For what does not race: it calls the first process. */
  readonly ground: DoorGround;
  readonly #place: Place;
  readonly #sockets = new Map<string, WebSocketClient>();

  constructor(place: Place) {
    this.#place = place;
    this.ground = new DoorGround(place.doors[0] as FrontDoor);
  }

  /** Makes all calls at once, by turns at each process; their answers in order. */
  async answers(...calls: readonly RacingCall[]): Promise<RpcAnswer[]> {
    const ready = await Promise.all(calls.map((call, index) => this.#socketOf(call, index)));
    const made = calls.map(({ method, params }, index) => {
      const socket = ready[index] as WebSocketClient;
      return socket.call(method, params);
    });
    return await Promise.all(made);
  }

  /** Makes all calls at once; their codes in order. */
  async race(...calls: readonly RacingCall[]): Promise<string[]> {
    return (await this.answers(...calls)).map(codeOfRpc);
  }

  /** Rows of a table. */
  async rows(table: string): Promise<Rows> {
    const { storage } = this.ground.door.relay.context;
    return (await rowsOf(storage, table)) as Rows;
  }

  async #socketOf({ by, device = 'phone' }: RacingCall, index: number): Promise<WebSocketClient> {
    const { doors } = this.#place;
    const door = doors[index % doors.length] as FrontDoor;
    // Several connections of one device, so that nothing waits in line before it arrives.
    const key = `${by.device(device).deviceId} ${index}`;
    const known = this.#sockets.get(key);
    if (known !== undefined) return known;
    const socket = await door.socket();
    await door.bindDevice(socket, by.device(device));
    this.#sockets.set(key, socket);
    return socket;
  }
}

/** The code of an answer, or `ok`. */
export function codeOfRpc({ error }: RpcAnswer): string {
  return error === undefined ? 'ok' : (errorCodeOfRpc(error.code) ?? String(error.code));
}

/** The one that was accepted, where the others came too late. */
export function onlyOne(codes: readonly string[]): number {
  expect(codes.toSorted()).toEqual(['ok', ...codes.slice(1).map(() => 'state_conflict')].sort());
  return codes.indexOf('ok');
}
