/** Groups behind a front door: people call over HTTP, and listen on connections. */
import {
  type ErrorCode,
  type JsonValue,
  type MethodName,
  ProtocolError,
} from '@posthouse/protocol';
import type { DeviceSession } from '../../src/call.ts';
import type { Heard } from '../support/connections.ts';
import { shortly } from '../support/connections.ts';
import { codeOf } from '../support/http.ts';
import type { Ground, Person } from '../support/people.ts';
import type { FrontDoor } from '../support/relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';
import type { TestGroup } from './support.ts';

/** The ground on which people of a door found groups. */
export class DoorGround implements Ground {
  /** The process that is called; others may stand beside it. */
  door: FrontDoor;
  readonly #people = new Map<string, Person>();

  constructor(door: FrontDoor) {
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
    groups: readonly TestGroup[],
    { device = 'phone', door = this.door } = {},
  ): Promise<WebSocketClient> {
    const socket = await door.socket();
    const bound = await door.bindDevice(socket, person.device(device));
    if (bound.error !== undefined) throw new Error(bound.error.message);
    const group_ids = groups.map(({ groupId }) => groupId);
    const answer = await socket.call('group.subscribe', { group_ids });
    if (answer.error !== undefined) throw new Error(answer.error.message);
    return socket;
  }
}

/** What arrived of groups before the answer to a call made now. */
export async function heardBy(socket: WebSocketClient): Promise<Heard[]> {
  const all = await socket.notificationsSoFar();
  return all.filter(({ method }) => method.startsWith('group.')).map(shortly);
}

/** Waits for the next hint about a group. */
export async function nextHint(socket: WebSocketClient): Promise<Heard> {
  for (;;) {
    const notification = await socket.notification();
    if (notification.method.startsWith('group.')) return shortly(notification);
  }
}
