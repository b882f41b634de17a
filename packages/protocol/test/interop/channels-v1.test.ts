import { describe, expect, test } from 'vitest';
import { channelIdInput } from '../../src/channels/ids.ts';
import { verifySignatures } from '../../src/crypto/index.ts';
import {
  type ChannelPost,
  checkChannelContentSize,
  checkChannelPost,
  checkChannelPostEdit,
  checkContentReference,
  decodeBase64url,
  deriveChannelId,
  deviceSignatures,
  deviceSigningInput,
  encodeBase64url,
  hex,
  openContent,
  type PostState,
  ProtocolError,
  postState,
  reducePost,
  utf8,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject } from '../../src/json/index.ts';
import { postReferences } from '../../src/markdown/index.ts';
import { describeVectors } from './vectors.ts';

interface Write {
  name: string;
  request: JsonObject & { $type: string; device_signature: string };
  signing_input_utf8_hex: string;
}

interface Step extends Omit<Write, 'name'> {
  expected: { status: string; reference_results?: unknown[] } & JsonObject;
}

interface Channels {
  network_context: string;
  channel_id: {
    id: string;
    operation: string;
    input: { nonce: string; creator: string; relay_id: string };
    expected: Record<string, string>;
  };
  media: { plaintext_base64: string; reference: JsonObject };
  channel_signer: { private_key: string; public_key: string };
  channel_write_cases: Write[];
  channel_edit_sequences: {
    name: string;
    post_case: string;
    post_sequence: number;
    steps: Step[];
  }[];
}

describeVectors<Channels>('channels-v1', ({ data, network }) => {
  const net = network();
  const { primitives } = net;
  const seed = decodeBase64url(data.channel_signer.private_key) as Uint8Array;
  const certificate = { signing_public_key: data.channel_signer.public_key };

  test(`${data.channel_id.id}: input, digest and ID`, () => {
    const { operation, input, expected } = data.channel_id;
    expect(operation).toBe('channel_id');
    const bytes = channelIdInput(net, input);
    const digest = primitives.sha256(bytes);
    expect({
      canonical_json: canonicalJson({
        ...input,
        $type: net.type('channel.identity'),
        $context: data.network_context,
      }),
      utf8_hex: hex(bytes),
      utf8_base64: btoa(String.fromCharCode(...bytes)),
      sha256_hex: hex(digest),
      sha256_base64url: encodeBase64url(digest),
      channel_id: deriveChannelId(net, input),
    }).toEqual(expected);
  });

  test('media: the reference is well-formed and names this content', () => {
    const { reference } = data.media;
    checkContentReference(reference, 'reference');
    const bytes = Uint8Array.from(atob(data.media.plaintext_base64), (c) => c.charCodeAt(0));
    expect(openContent(net, reference, bytes)).toEqual(bytes);
  });

  test('channel_signer: the keys belong together', () => {
    expect(encodeBase64url(primitives.ed25519.publicKey(seed))).toBe(
      certificate.signing_public_key,
    );
  });

  /** Input, signature by the given key, and verification, of any request of the file. */
  function expectSigned({ request, signing_input_utf8_hex }: Omit<Write, 'name'>): void {
    const input = deviceSigningInput(net, request);
    expect(hex(input)).toBe(signing_input_utf8_hex);
    expect(encodeBase64url(primitives.ed25519.sign(seed, input))).toBe(request.device_signature);
    verifySignatures(primitives, deviceSignatures(net, request, certificate), 'vector');
  }

  describe.each(data.channel_write_cases)('write: $name', (write) => {
    test('input and signature', () => {
      expectSigned(write);
    });

    test('the request passes its checks', () => {
      const { request } = write;
      if (request.$type === net.type('channel.post')) checkChannelPost(net, request);
      else checkChannelPostEdit(net, request);
      expect(utf8(checkChannelContentSize(request as ChannelPost)).length).toBeLessThan(65_536);
    });

    test('with a member added it does not verify', () => {
      const checks = deviceSignatures(net, { ...write.request, extra: 1 }, certificate);
      expect(() => verifySignatures(primitives, checks, 'vector')).toThrow(ProtocolError);
    });
  });

  test.each(data.channel_edit_sequences)('edits: $name', ({ post_case, post_sequence, steps }) => {
    const origin = data.channel_write_cases.find(({ name }) => name === post_case)?.request;
    checkChannelPost(net, origin);
    let state = postState(origin);
    for (const step of steps) {
      expectSigned(step);
      expect(step.request.target_sequence).toBe(post_sequence);
      const { status, next } = applyEdit(state, step.request);
      const { body, attachments } = next;
      const outcome =
        status === 'bad_request'
          ? { status }
          : {
              status,
              ...(body === undefined ? {} : { body }),
              ...(attachments === undefined ? {} : { attachments }),
              reference_results: postReferences(next),
            };
      expect(outcome).toEqual(step.expected);
      state = next;
    }
  });

  function applyEdit(state: PostState, edit: unknown): { status: string; next: PostState } {
    try {
      checkChannelPostEdit(net, edit);
      const next = reducePost(state, edit);
      return { status: next === state ? 'no_change' : 'applied', next };
    } catch (error) {
      if (error instanceof ProtocolError) return { status: error.code, next: state };
      throw error;
    }
  }
});
