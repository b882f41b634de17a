/**
 * The blob store that a relay of this project may offer its accounts. It is no part of the protocol;
 * the descriptor declares it.
 */
import type { JsonObject } from '@posthouse/protocol/json';
import type { HttpResponse } from '../connect/transport.ts';
import type { AccountCore } from '../core.ts';
import {
  ClientError,
  checkRelayAnswer,
  decodeUtf8,
  isErrorCode,
  isJsonObject,
  parseJson,
  RelayMisbehaviour,
  RelayRefused,
  RelayUnreachable,
} from '../taken.ts';
import type { Uploader } from './seal-attachment.ts';

/** The capability of a relay that stores blobs of its accounts. */
const blobsCapability = 'posthouse.blobs.v1';

/** Far above the length of an answer. */
const maxAnswerBytes = 65_536;

/** Makes the uploader that stores at the account's home relay. */
export function relayUploader(core: AccountCore): Uploader {
  return {
    async put(bytes, { signal, progress }) {
      const { relayId } = await core.home();
      const connection = core.relayOverHttp(relayId);
      const { relay } = await connection.authenticated(signal);
      if (!relay.descriptor.capabilities?.includes(blobsCapability)) {
        throw new ClientError(
          'no_relay',
          'the home relay stores no attachments: pass an `uploader` for another host',
        );
      }
      const response = await connection.request(
        {
          verb: 'PUT',
          path: '/blobs',
          headers: { accept: 'application/json', 'content-type': 'application/octet-stream' },
          body: bytes,
          ...(progress && { progress: (sent: number) => progress({ sent, of: bytes.length }) }),
          maxBytes: maxAnswerBytes,
        },
        signal,
      );
      return uriOf(response);
    },
  };
}

function uriOf(response: HttpResponse): string {
  const { status } = response;
  if (status >= 502 && status <= 504 && !response.contentType?.startsWith('application/json')) {
    throw new RelayUnreachable(`the relay answered with status ${status}: try again later`, {
      outcomeUnknown: true,
    });
  }
  const answer = jsonOf(response);
  if (status === 201 && typeof answer.uri === 'string') return answer.uri;
  if (status === 413) {
    throw new ClientError(
      'invalid_input',
      'the file is larger than the relay stores: send a smaller one',
    );
  }
  const { code, message, data } = answer;
  if (typeof code === 'string' && typeof message === 'string' && isErrorCode(code)) {
    throw new RelayRefused('blobs', code, { message, data: isJsonObject(data) ? data : undefined });
  }
  throw new RelayMisbehaviour('malformed_response', `blobs: status ${status}`);
}

function jsonOf({ body }: HttpResponse): JsonObject {
  const value = checkRelayAnswer('malformed_response', 'blobs', () => parseJson(decodeUtf8(body)));
  if (isJsonObject(value)) return value;
  throw new RelayMisbehaviour('malformed_response', 'blobs: expected an object');
}
