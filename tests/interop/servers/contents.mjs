// The contents that the servers on both SDKs have in common.
export const text = (words) => ({ content: [{ type: 'text', text: words }] });
const NAMES = ['alice', 'albert', 'bob'];
export const named = (value) => NAMES.filter((one) => one.startsWith(value ?? ''));

// One content item of each kind except plain text.
export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
export const MEDIA = [
  { type: 'image', data: PIXEL, mimeType: 'image/png' },
  { type: 'audio', data: 'AAECAw==', mimeType: 'audio/wav' },
  { type: 'resource', resource: { uri: 'memo://one', mimeType: 'text/plain', text: 'the first memo' } },
  { type: 'resource', resource: { uri: 'pixel://red', mimeType: 'image/png', blob: PIXEL } },
  { type: 'resource_link', uri: 'memo://one', name: 'one' },
];
