/** Groups and channels behind a front door: people call over HTTP, and listen on connections. */
import { type ErrorCode, type MethodName, ProtocolError } from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';
import type { DeviceSession } from '../../src/sessions/session.ts';
import { type Hint, hintOf } from '../fixtures/connections.ts';
import type { HomeRelay, Person } from '../fixtures/person.ts';
import { codeOf } from './http.ts';
import type { ServedRelay } from './served-relay.ts';
import type { RpcAnswer, RpcNotification, WebSocketClient } from './websocket.ts';

/** Which of a person's devices connects, and to which process. */
interface At {
  readonly device?: string;
  readonly door?: ServedRelay;
}

/** The ground on which people of a door found groups and channels. */
export class DoorGround implements HomeRelay {
  /** The process that is called; others may stand beside it. */
  door: ServedRelay;
  readonly #people = new Map<string, Person>();

  constructor(door: ServedRelay) {
    this.door = door;
  }

  get clock() {
    return this.door.clock;
  }

  get relayId() {
    return this.door.relayId;
  }

  async person(name: string, devices?: string[]): Promise<Person> {
    const person = await this.door.person(name, devices);
    this.#people.set(person.account, person);
    return person;
  }

  /** Takes the session for its device's, and authenticates. */
  async call(
    method: string,
    params: unknown,
    { session }: { readonly session?: object | undefined } = {},
  ): Promise<JsonValue> {
    const { door } = this;
    const { account, deviceId } = session as DeviceSession;
    const person = this.#people.get(account) as Person;
    const [name] = [...person.devices].find(([, device]) => device.deviceId === deviceId) ?? [];
    const { token } = await door.logInDevice(person, name);
    const answer = await door.http().call(method as MethodName, params, { token });
    const code = codeOf(answer);
    if (code !== 'ok') throw new ProtocolError(code as ErrorCode, answer.text);
    return (answer.text === '' ? null : JSON.parse(answer.text)) as JsonValue;
  }

  /** A connection of a person's device that subscribed these groups. */
  async subscribed(
    person: Person,
    groups: readonly { readonly groupId: string }[],
    at: At = {},
  ): Promise<WebSocketClient> {
    const group_ids = groups.map(({ groupId }) => groupId);
    return await this.#connected(person, at, (socket) =>
      socket.call('group.subscribe', { group_ids }),
    );
  }

  /** A connection of a person's device that subscribed these channels. */
  async following(
    person: Person,
    channels: readonly { readonly channelId: string }[],
    at: At = {},
  ): Promise<WebSocketClient> {
    const channel_ids = channels.map(({ channelId }) => channelId);
    return await this.#connected(person, at, (socket) =>
      socket.call('channel.subscribe', { channel_ids }),
    );
  }

  async #connected(
    person: Person,
    { device = 'phone', door = this.door }: At,
    subscribe: (socket: WebSocketClient) => Promise<RpcAnswer>,
  ): Promise<WebSocketClient> {
    const socket = await door.socket();
    const bound = await door.bindDevice(socket, person.device(device));
    if (bound.error !== undefined) throw new Error(bound.error.message);
    const answer = await subscribe(socket);
    if (answer.error !== undefined) throw new Error(answer.error.message);
    return socket;
  }
}

/** What arrived of groups and channels before the answer to a call made now. */
export async function receivedHints(socket: WebSocketClient): Promise<Hint[]> {
  const all = await socket.notificationsSoFar();
  return all.filter(isSubscribed).map(hintOf);
}

/** Waits for the next hint about a group or a channel. */
export async function nextHint(socket: WebSocketClient): Promise<Hint> {
  for (;;) {
    const notification = await socket.notification();
    if (isSubscribed(notification)) return hintOf(notification);
  }
}

function isSubscribed({ method }: RpcNotification): boolean {
  return /^(group|channel)\./.test(method);
}
