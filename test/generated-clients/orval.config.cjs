module.exports = {
  meterline: {
    input: './openapi.json',
    output: { target: './orval/client.ts', client: 'fetch', baseUrl: process.env.METERLINE_URL },
  },
};
