import { describe, expect, test } from 'vitest';
import { hashReferenceUri, type PostState, postState, reducePost } from '../../src/index.ts';
import { postReferences } from '../../src/markdown/index.ts';
import { attachment, edit, post } from '../channels/fixture.ts';

const [x, y] = [attachment(1), attachment(2)];
const body = {
  content_type: 'text/markdown',
  text: `![x](${hashReferenceUri(x.hash)}) [y](${hashReferenceUri(y.hash)}) [web](https://a.b)`,
};
const results = (state: PostState) =>
  postReferences(state).map((result) =>
    result.status === 'resolved' ? result.index : result.status,
  );

describe('06 §6.2: references of a body', () => {
  const state = postState(post({ body, attachments: [x, y] }));

  test('resolve among the attachments in force, in any order', () => {
    expect(results(state)).toEqual([0, 1]);
    expect(results(reducePost(state, edit({ attachments: [y, x] })))).toEqual([1, 0]);
  });

  test('never lead back to what an edit took away', () => {
    const replaced = reducePost(state, edit({ attachments: [y] }));
    expect(results(replaced)).toEqual(['unresolved', 0]);
    const removed = reducePost(replaced, edit({ attachments: null }));
    expect(results(removed)).toEqual(['unresolved', 'unresolved']);
    const renewed = reducePost(removed, edit({ body: { ...body, text: `${body.text}!` } }));
    expect(results(renewed)).toEqual(['unresolved', 'unresolved']);
  });

  test('there are none without a body, or in plain text', () => {
    expect(results(reducePost(state, edit({ body: null })))).toEqual([]);
    const plain = { content_type: 'text/plain', text: body.text };
    expect(results(reducePost(state, edit({ body: plain })))).toEqual([]);
  });
});
