/** The accounts of a load generator, registered at every server of a run, and what they send. */
import {
  grantedMessage,
  PlainSocket,
  type TestAccount,
  type TestContext,
  WssCaller,
} from '@posthouse/conformance';
import { type MessageEnvelope, newMessageId } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { Account, unixSeconds } from '../packages/conformance/src/fixtures/account.ts';
import { changeEnvelope } from '../packages/conformance/src/fixtures/direct-messages.ts';
import type { Hello } from './floor.ts';
import { network } from './support.ts';

/** A frame to send, or how it is made from the answer to the frame before. */
export type Frame = string | ((answer: string) => string);

/** Accounts that are registered and connected at once. */
const atOnce = 16;

/** How far from each other in the list are accounts that write to each other. */
const distances = [1, 7, 31, 97];

/** Accounts with one device each. */
export class Population {
  readonly devices: readonly TestAccount['device'][];
  readonly #withSenderBoxes: boolean;
  /** A sealed message with its grant, for each pair of accounts that write to each other. */
  readonly #templates = new Map<string, JsonObject>();

  private constructor(devices: readonly TestAccount['device'][], withSenderBoxes: boolean) {
    this.devices = devices;
    this.#withSenderBoxes = withSenderBoxes;
  }

  static async make(
    accounts: number,
    { withSenderBoxes = false }: { readonly withSenderBoxes?: boolean | undefined } = {},
  ): Promise<Population> {
    const devices: TestAccount['device'][] = [];
    for (let count = 0; count < accounts; count += 1) {
      devices.push(await new Account(network).device());
    }
    return new Population(devices, withSenderBoxes);
  }

  /**
   * Opens a connection with a session for each account, which is registered before if asked.
   *
   * @param context of the relay, for WebSockets
   * @param sockets WebSocket addresses of the relay's processes; connections use them in turn
   */
  async connect(
    context: TestContext,
    sockets: readonly string[],
    { register }: { readonly register: boolean },
  ): Promise<PlainSocket[]> {
    const opened: PlainSocket[] = [];
    const connectOne = async (device: TestAccount['device'], index: number) => {
      if (register) await context.register(device.account, [device]);
      const socket = sockets[index % sockets.length] as string;
      const caller = await WssCaller.open(context.target, socket);
      await context.authenticateDevice(caller, device);
      opened[index] = caller.socket;
    };
    for (let start = 0; start < this.devices.length; start += atOnce) {
      const some = this.devices.slice(start, start + atOnce);
      await Promise.all(some.map((device, at) => connectOne(device, start + at)));
    }
    return opened;
  }

  /** Opens a connection to the floor for each account. */
  async greet(socket: string, ca: string): Promise<PlainSocket[]> {
    const opened: PlainSocket[] = [];
    for (const { account, certificate } of this.devices) {
      const connection = await PlainSocket.open(socket, ca);
      const params: Hello = { account: account.id, certificate };
      connection.send(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'hello', params }));
      await connection.receive((text) => text.includes('"result"'));
      opened.push(connection);
    }
    return opened;
  }

  /**
   * Signs messages of the first accounts to each other, shared out evenly. Each is new to every
   * server; ciphertext and key boxes are those of one sealed message for each pair of accounts,
   * which no relay can tell.
   */
  messages(senders: number, count: number): Frame[][] {
    return Array.from({ length: senders }, (_, sender) => {
      const own = Math.floor(count / senders) + (sender < count % senders ? 1 : 0);
      return Array.from({ length: own }, (_, id) => {
        const params = this.#message(sender, this.#recipient(sender, id, senders));
        return JSON.stringify({ jsonrpc: '2.0', id, method: 'message.send', params });
      });
    });
  }

  #recipient(sender: number, message: number, senders: number): number {
    // A single sender writes to an account that only receives.
    const among = Math.max(senders, 2);
    const distance = distances[message % distances.length] as number;
    return (sender + 1 + ((distance - 1) % (among - 1))) % among;
  }

  #message(sender: number, recipient: number): JsonObject {
    const from = this.devices[sender] as TestAccount['device'];
    const to = this.devices[recipient] as TestAccount['device'];
    const pair = `${sender} ${recipient}`;
    let template = this.#templates.get(pair);
    if (template === undefined) {
      const senders = this.#withSenderBoxes ? { senders: [from.certificate] } : {};
      template = grantedMessage(from, [to], senders);
      this.#templates.set(pair, template);
    }
    const changes: Partial<MessageEnvelope> = {
      message_id: newMessageId(nodeRandom),
      created_at: unixSeconds(),
    };
    return changeEnvelope(from, template, changes);
  }
}
