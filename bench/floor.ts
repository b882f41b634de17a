/**
 * The floor: the least that a relay must do to accept a message, and nothing else. WebSocket over TLS,
 * parse, canonical form, one Ed25519 verification on libuv's pool, one durable commit for all that
 * wait, with the rows that a relay stores; then the answer, and a notice to the recipient. It checks no
 * right, knows no session and has no limits.
 *
 *   node bench/floor.ts FOLDER    # FOLDER/server.pem and server.key; prints `ready PORT`
 */
import { hash, type KeyObject, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  type DeviceCertificate,
  decodeBase64url,
  envelopeSigningInput,
  limits,
  type SendRequest,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { importPublicKey } from '@posthouse/protocol/node';
import { type WebSocket, WebSocketServer } from 'ws';
import { envelopeId } from '../packages/relay/src/messages/message-parts.ts';
import { migrations } from '../packages/relay/src/messages/migrations.ts';
import { network } from './support.ts';

/** The first frame of a connection, in place of authentication. */
export interface Hello {
  readonly account: string;
  readonly certificate: DeviceCertificate;
}

interface Waiting {
  readonly id: number;
  readonly socket: WebSocket;
  readonly certificate: string;
  readonly digest: string;
  readonly envelope: string;
  readonly params: SendRequest;
}

const folder = process.argv[2] as string;
const database = new DatabaseSync(join(folder, 'floor.sqlite'));
database.exec('PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536');
for (const { statements } of migrations) for (const sql of statements) database.exec(sql);
const statements = {
  envelope: database.prepare('INSERT INTO message_envelopes VALUES (?, ?, ?)'),
  certificate: database.prepare(
    'INSERT INTO message_certificates VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
  ),
  head: database.prepare(`INSERT INTO timeline_heads VALUES (?, 0)
    ON CONFLICT (account) DO UPDATE SET head = head + 1 RETURNING head`),
  record: database.prepare('INSERT INTO timeline_records VALUES (?, ?, ?, ?, ?, ?, ?, ?)'),
  box: database.prepare('INSERT INTO timeline_boxes VALUES (?, ?, ?, ?)'),
  result: database.prepare(`INSERT INTO sent_results (sender, message_id, request, accepted_at,
    keep_until, status, received) VALUES (?, ?, ?, ?, ?, 'target_accepted', ?)`),
};

const sockets = new Map<string, WebSocket>();
const certificates = new Map<string, { readonly text: string; readonly key: KeyObject }>();
const bytesOf = (text: string) => decodeBase64url(text) ?? new Uint8Array();
const digest = (text: string) => hash('sha256', text, 'base64url');
let waiting: Waiting[] = [];

function greet(socket: WebSocket, { account, certificate }: Hello): void {
  const key = importPublicKey('ed25519', bytesOf(certificate.signing_public_key));
  if (key === undefined) throw new Error('a certificate with a wrong key');
  sockets.set(account, socket);
  certificates.set(account, { text: canonicalJson(certificate), key });
}

function receive(socket: WebSocket, data: Buffer): void {
  const text = data.toString();
  const { id, method, params } = JSON.parse(text);
  if (method === 'hello') {
    greet(socket, params);
    socket.send(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
    return;
  }
  const envelope: SendRequest['envelope'] = params.envelope;
  const { text: certificate, key } = certificates.get(envelope.from) ?? {};
  if (certificate === undefined || key === undefined) throw new Error('a message before hello');
  const message = { id, socket, certificate, params, digest: digest(text) };
  const canonical = canonicalJson(envelope);
  const signature = bytesOf(envelope.device_signature);
  verify(null, envelopeSigningInput(network, envelope), key, signature, (error, isValid) => {
    if (error !== null || !isValid) {
      socket.send(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"signature"}}`);
      return;
    }
    if (waiting.length === 0) setImmediate(commit);
    waiting.push({ ...message, envelope: canonical });
  });
}

/** Stores all that wait in one transaction, then answers. */
function commit(): void {
  const batch = waiting;
  waiting = [];
  const now = Math.floor(Date.now() / 1_000);
  const until = now + 31_536_000;
  const heads = new Map<string, number>();
  database.exec('BEGIN IMMEDIATE');
  for (const { params, envelope, certificate, digest: request } of batch) {
    const { from, from_device_id, to, message_id, created_at } = params.envelope;
    const ids = [envelopeId(created_at, digest(envelope)), digest(certificate)] as const;
    const bytes = Buffer.byteLength(envelope);
    statements.envelope.run(ids[0], until, envelope);
    statements.certificate.run(ids[1], from_device_id, until, certificate);
    const records = [{ account: to, boxes: params.recipient_boxes }];
    if (params.sender_boxes !== undefined) {
      records.push({ account: from, boxes: params.sender_boxes });
    }
    for (const { account, boxes } of records) {
      const { head } = statements.head.get(account) as { head: number };
      const visible = boxes.map(({ device_id }) => device_id).join(' ');
      statements.record.run(account, head, now, until, ...ids, bytes, visible);
      for (const box of boxes) {
        statements.box.run(account, box.device_id, head, canonicalJson(box));
      }
      heads.set(account, head);
    }
    statements.result.run(from, message_id, request, now, until, ids[0]);
  }
  database.exec('COMMIT');
  const status = `{"status":"target_accepted","accepted_at":${now}}`;
  for (const { id, socket } of batch)
    socket.send(`{"jsonrpc":"2.0","id":${id},"result":${status}}`);
  for (const [account, head] of heads) {
    const notice = { method: 'message.timeline.changed', params: { head } };
    sockets.get(account)?.send(JSON.stringify({ jsonrpc: '2.0', ...notice }));
  }
}

const server = createServer({
  cert: readFileSync(join(folder, 'server.pem')),
  key: readFileSync(join(folder, 'server.key')),
  minVersion: 'TLSv1.2',
});
const webSockets = new WebSocketServer({
  server,
  perMessageDeflate: false,
  maxPayload: limits.webSocketMessageBytes,
  skipUTF8Validation: true,
});
webSockets.on('connection', (socket) => {
  socket.on('message', (data) => receive(socket, data as Buffer));
  socket.on('error', () => socket.terminate());
});
process.once('SIGTERM', () => process.exit());
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`);
});
